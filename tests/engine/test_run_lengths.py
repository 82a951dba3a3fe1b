from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mmengine.optim import OptimWrapper
from mmengine.optim.scheduler import LinearLR, PolyLR
from mmengine.runner import IterBasedTrainLoop

from mmseg_cct.engine.hooks.resume_hook import follow_config, rewind_to_step

settings.register_profile('any machine', deadline=None, max_examples=40)
settings.load_profile('any machine')
FEW = st.integers(1, 60)


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
