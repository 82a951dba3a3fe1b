"""What a resumed training goes on from, and its seeds; what is restored is in tests/trust."""

import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mmengine.hooks import CheckpointHook
from mmengine.optim import OptimWrapper
from mmengine.optim.scheduler import LinearLR, PolyLR
from mmengine.runner import IterBasedTrainLoop

from mmseg_cct.engine.hooks import IterationSeedHook, ResumeHook, iteration_seed_hook
from mmseg_cct.engine.hooks.resume_hook import follow_config
from mmseg_cct.errors import UserError
from mmseg_cct.utils.seed import seeded_random_state


@pytest.mark.parametrize('resume', [True, False])
def test_a_resume_goes_on_from_the_newest_of_the_hooks_checkpoints(tmp_path, messages, resume):
    hooks = [CheckpointHook(by_epoch=False, filename_tmpl='ck_{}.pth')]
    runner = SimpleNamespace(work_dir=str(tmp_path), hooks=hooks, _load_from=None)
    for expected in (None, str(tmp_path / 'ck_10.pth')):
        runner._resume = resume
        ResumeHook().before_run(runner)
        assert runner._load_from == (expected if resume else None)
        assert runner._resume == (resume and expected is not None)
        for number in (2, 10):
            torch.save(dict(state_dict=dict(a=torch.zeros(9))), tmp_path / f'ck_{number}.pth')
    assert len(messages) == resume and all('no whole checkpoint' in line for line in messages)


def test_the_options_are_those_of_the_config(cct, trained, messages):
    cct.config.optim_wrapper.paramwise_cfg = dict(custom_keys={'neck': dict(lr_mult=0.1)})
    cct.config.custom_hooks.pop(0)
    cct.write()
    cct.train(options={'train_cfg.max_iters': 6})
    new = dict(lr=0.005, momentum=0.5, weight_decay=0.1)
    options = {f'optim_wrapper.optimizer.{name}': value for name, value in new.items()}
    options |= {'param_scheduler.0.power': 2.0}
    cct.train('again', resume=str(cct.folder / 'work/iter_4.pth'), options=options)
    groups = cct.load(cct.folder / 'again/iter_6.pth')['optimizer']['param_groups']
    assert {round(group['initial_lr'], 6) for group in groups} == {0.005, 0.0005}
    assert {(group['momentum'], group['weight_decay']) for group in groups} == {(0.5, 0.1)}
    for iteration, (line,) in cct.scalars(cct.folder / 'again').items():
        assert line['lr'] == pytest.approx(0.005 * (1 - (iteration - 1) / 5) ** 2, abs=1e-9)
    assert [line for line in messages if 'without an IterationSeedHook' in line]


def without_a_perturbation(config):
    config.model.auxiliary_head.perturbations.pop('FeatureDrop')


def without_decoders(config):
    config.model.update(auxiliary_head=None, type='EncoderDecoder')
    config.train_dataloader.dataset.unlabeled = None
    config.custom_hooks.pop(1)


def with_adam(config):
    config.optim_wrapper.optimizer = dict(type='AdamW', lr=1e-3)


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (without_a_perturbation, r'iter_6.pth: does not fit .*\(7, 3, 6\), expected \(6'),
        (without_decoders, r'auxiliary_head\S+ is no part of the model'),
        (with_adam, 'is of another optimizer'),
        (lambda config: config.train_cfg.update(max_iters=5), r'max_iters=5: .* is of 6'),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(change, message, cct, trained):
    change(cct.config)
    cct.write()
    with pytest.raises(UserError, match=message):
        cct.train(resume=str(trained.checkpoint))


@pytest.mark.parametrize('by_config', [False, True])
def test_weights_alone_are_nothing_to_resume_from(cct, trained, by_config):
    content, file = trained.load(trained.checkpoint), str(cct.folder / 'weights.pth')
    torch.save({'state_dict': content['state_dict']}, file)
    how = dict(options=dict(resume=True, load_from=file)) if by_config else dict(resume=file)
    with pytest.raises(UserError, match=r'^--resume: .*weights.pth has no meta, optim'):
        cct.train(**how)


def test_the_draws_depend_on_seed_iteration_and_rank_and_nothing_before(monkeypatch):
    def drawn(seed, iteration):
        hook = IterationSeedHook()
        assert hook.priority == 'VERY_HIGH'  # before other hooks draw
        hook.before_train_iter(SimpleNamespace(seed=seed, iter=iteration))
        return random.random(), np.random.rand(), torch.rand(1).item()

    with seeded_random_state(0):
        results = [drawn(0, 0), drawn(0, 1), drawn(1, 0)]
        assert drawn(0, 0) == results[0]
        monkeypatch.setattr(iteration_seed_hook, 'get_rank', lambda: 1)
        results.append(drawn(0, 0))
    for generator in zip(*results):
        assert len(set(generator)) == 4


FEW = st.integers(1, 60)


def of_run(warm_up, max_iters):
    """A run's optimizer and schedules, as far as a resume looks at them."""
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    wrapper = OptimWrapper(optimizer)
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


@settings(deadline=None, max_examples=40)
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
