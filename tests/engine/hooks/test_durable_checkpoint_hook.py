"""A checkpoint goes only once its successor is there, and only if it is the hook's own."""

import itertools
import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import world
from mmengine.hooks import Hook
from mmengine.logging import MessageHub
from mmengine.registry import HOOKS
from mmseg.evaluation import IoUMetric

from mmseg_cct.engine.hooks import DurableCheckpointHook
from mmseg_cct.engine.hooks.durable_checkpoint_hook import VALIDATED
from mmseg_cct.errors import UserError


def save_empty(folder, filename, *_, **__):
    torch.save({}, Path(folder, filename))


def runner_in(folder, hub, save=save_empty):
    return SimpleNamespace(
        model=torch.nn.Linear(1, 1),
        work_dir=str(folder),
        message_hub=hub,
        logger=logging.getLogger(__name__),
        max_iters=100,
        epoch=0,
        save_checkpoint=save,
        _train_loop=None,
    )


def test_a_checkpoint_goes_after_the_next_is_there_and_one_that_is_written_again_is_kept(tmp_path):
    """After a kill between two steps of the optimizer, a training goes back and repeats some."""
    present = []

    def save(*args, **kwargs):
        present.append(sorted(path.name for path in tmp_path.glob('iter_*.pth')))
        save_empty(*args, **kwargs)

    runner = runner_in(tmp_path, MessageHub.get_instance(world.experiment()), save)
    for iterations in (range(4), range(2, 4)):  # two make a step
        hook = DurableCheckpointHook(interval=1, by_epoch=False, max_keep_ckpts=2)
        hook.before_train(runner)
        for runner.iter in iterations:
            hook.after_train_iter(runner, runner.iter)
            assert (tmp_path / f'iter_{runner.iter + 1}.pth').exists()
    assert present[2] == ['iter_1.pth', 'iter_2.pth']
    assert len(list(tmp_path.glob('iter_*.pth'))) == 2


@pytest.mark.slow
@pytest.mark.parametrize('save_best', [None, 'mIoU'])
def test_weights_that_overflowed_are_not_saved_and_the_last_good_ones_stay(cct, save_best):
    """Without an interval of its own, a checkpoint is written where the training validates."""
    cct.config.default_hooks.checkpoint.update(max_keep_ckpts=1, save_best=save_best)
    if save_best is None:
        del cct.config.default_hooks.checkpoint['interval']
    cct.config.train_cfg.val_interval = 1
    cct.config.custom_hooks.append(dict(type='OverflowHook'))
    cct.write()
    with pytest.raises(UserError, match=r'^iteration \d: not saved.* NaN or infinite'):
        cct.train()
    left = {path.name for path in (cct.folder / 'work').glob('*.pth')}
    assert left == ({'best_mIoU_iter_1.pth'} if save_best else {'iter_1.pth'})


@HOOKS.register_module()
class OverflowHook(Hook):
    """A step that is too long."""

    def after_train_iter(self, runner, *args, **kwargs):
        if runner.iter == 1:
            runner.model.decode_head.conv_seg.weight.data.fill_(torch.inf)


def test_checkpoints_lie_in_the_work_directory():
    with pytest.raises(UserError, match='out_dir='):
        DurableCheckpointHook(out_dir='elsewhere')


@pytest.fixture
def rising(slow, monkeypatch):
    """Settings of a training whose validations score ever higher."""
    scores, compute = itertools.count(1.0), IoUMetric.compute_metrics
    monkeypatch.setattr(
        IoUMetric,
        'compute_metrics',
        lambda self, results: {**compute(self, results), 'mIoU': next(scores)},
    )
    return {
        'train_cfg.max_iters': 2,
        'train_cfg.val_interval': 1,
        'default_hooks.checkpoint.save_best': 'mIoU',
        'default_hooks.checkpoint.interval': 1,
    }


def best(folder):
    return [path.name for path in folder.glob('best_*')]


def test_the_best_of_another_training_stays_and_a_known_validation_is_not_repeated(cct, rising):
    cct.train('first', options={**rising, 'train_cfg.max_iters': 1})
    first, second = cct.folder / 'first', cct.folder / 'second'
    cct.train('second', options=rising, resume=str(first / 'iter_1.pth'))
    assert best(first) == ['best_mIoU_iter_1.pth'] and best(second) == ['best_mIoU_iter_2.pth']
    hub = cct.load(second / 'iter_2.pth')['message_hub']
    assert len(hub['log_scalars']['val/mIoU'].data[0]) == 2  # of 1, which it knew, and 2


def test_the_best_of_a_repeated_validation_stays(cct, rising):
    cct.train(options=rising)
    file = cct.folder / 'work/iter_2.pth'
    content = cct.load(file)
    del content['message_hub']['runtime_info'][VALIDATED]  # as if killed before the best
    torch.save(content, file)
    cct.train(options=rising, resume='auto')
    assert best(cct.folder / 'work') == ['best_mIoU_iter_2.pth']


@pytest.mark.parametrize('save_best', ['mIoU', ['aAcc', 'mIoU']])
def test_no_other_file_is_removed_as_the_best_before(tmp_path, save_best):
    for name in ('notes.txt', 'elsewhere/best_mIoU_iter_9.pth', 'best_mIoU_iter_9.pth'):
        file, own = tmp_path / name, tmp_path / Path(name).name
        for path in (file, own):
            path.parent.mkdir(exist_ok=True)
            path.touch()
        hub = MessageHub.get_instance(world.experiment())
        for key in ('best_ckpt', 'best_ckpt_mIoU'):
            hub.update_info(key, str(file))
        hook = DurableCheckpointHook(interval=1, by_epoch=False, save_best=save_best)
        runner = runner_in(tmp_path, hub)
        hook.before_train(runner)
        runner.iter = 10
        hook.after_val_epoch(runner, dict(mIoU=1.0, aAcc=1.0))
        assert (tmp_path / 'best_mIoU_iter_10.pth').exists()
        assert own.exists() == (name == 'notes.txt') and file.exists() == (
            file != own or own.exists()
        )
