"""Lengths of runs, whatever the numbers: ramps, schedules and resumes."""

import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mmengine.config import Config
from mmengine.optim import OptimWrapper
from mmengine.optim.scheduler import LinearLR, PolyLR
from mmengine.runner import IterBasedTrainLoop

from mmseg_cct.config.load import move_scheduler_ends
from mmseg_cct.engine.hooks import RampUpHook
from mmseg_cct.engine.hooks.resume_hook import follow_config, rewind_to_step
from mmseg_cct.engine.schedules import SCHEDULES

settings.register_profile('any machine', deadline=None, max_examples=40)
settings.load_profile('any machine')
LENGTHS = st.integers(1, 10**6)
FEW = st.integers(1, 60)


@given(LENGTHS, st.floats(0, 1), st.sampled_from(sorted(SCHEDULES)), st.floats(-50, 50))
def test_a_ramp_goes_one_way_and_ends_at_its_share_of_the_run(max_iters, fraction, schedule, end):
    hook = RampUpHook('loss_weight', end=end, schedule=schedule, fraction=fraction)
    last = int(fraction * max_iters) + 1
    places = sorted({0, last // 3, last // 2, last, max_iters, 2 * max_iters})
    values = [hook.value_at(t, max_iters, built=1.0) for t in places]
    low, high = sorted((0.0, end))
    assert all(low <= value <= high for value in values)
    assert values == sorted(values, reverse=end < 0)
    # η's curve is at 1 - e⁻⁵ there
    assert hook.value_at(last, max_iters, 1.0) == pytest.approx(end, rel=math.exp(-5) + 1e-9)


@given(st.lists(st.tuples(LENGTHS, st.booleans()), max_size=4), LENGTHS, LENGTHS)
def test_only_schedules_that_end_with_the_run_follow_its_new_end(ends, old, new):
    ends = [*ends, (old, False)]
    config = Config(dict(train_cfg=dict(max_iters=new)))
    config.param_scheduler = [dict(type='PolyLR', end=end, by_epoch=by) for end, by in ends]
    move_scheduler_ends(config, old)
    for (end, by_epoch), scheduler in zip(ends, config.param_scheduler, strict=True):
        assert scheduler['end'] == (new if end == old and not by_epoch else end)


def of_run(warm_up, max_iters, accumulative_counts=1):
    """A run's optimizer and schedules, as far as a resume looks at them."""
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    wrapper = OptimWrapper(optimizer, accumulative_counts=accumulative_counts)
    schedulers = [
        LinearLR(wrapper, start_factor=0.1, begin=0, end=warm_up, by_epoch=False),
        PolyLR(wrapper, power=0.9, begin=warm_up, end=warm_up + max_iters, by_epoch=False),
    ]
    loop = object.__new__(IterBasedTrainLoop)
    return SimpleNamespace(optim_wrapper=wrapper, param_schedulers=schedulers, train_loop=loop)


def rate_after(run, iterations):
    for _ in range(iterations):
        run.optim_wrapper.optimizer.step()
        for scheduler in run.param_schedulers:
            scheduler.step()
    return run.optim_wrapper.param_groups[0]['lr']


def checkpoint_of(run, iteration):
    return dict(
        meta=dict(iter=iteration),
        optimizer=run.optim_wrapper.state_dict(),
        param_schedulers=[scheduler.state_dict() for scheduler in run.param_schedulers],
    )


@given(FEW, FEW, FEW, st.data())
def test_a_resume_has_the_rates_of_a_run_of_the_new_length(warm_up, old, new, data):
    done = data.draw(st.integers(1, min(old, new) + warm_up), 'iterations done')
    to_come = data.draw(st.integers(0, new + warm_up - done), 'iterations to come')
    first = of_run(warm_up, old)
    rate_after(first, done)
    checkpoint, resumed = checkpoint_of(first, done), of_run(warm_up, new)
    follow_config(resumed, checkpoint)
    # as mmengine's `Runner.resume` does then
    resumed.optim_wrapper.load_state_dict(checkpoint['optimizer'])
    for scheduler, state in zip(resumed.param_schedulers, checkpoint['param_schedulers']):
        scheduler.load_state_dict(state)
    expected = rate_after(of_run(warm_up, new), done + to_come)
    assert rate_after(resumed, to_come) == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 500), st.integers(1, 9))
def test_a_resume_goes_back_to_the_last_step_of_the_optimizer(done, counts):
    run, meta = of_run(5, 200, counts), dict(iter=done)
    rewind_to_step(run.optim_wrapper, meta)
    assert meta['iter'] == done - done % counts
