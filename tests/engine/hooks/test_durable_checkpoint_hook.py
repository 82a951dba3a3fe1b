"""A checkpoint goes only once its successor is there, and only if it is the hook's own."""

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import world
from mmengine.hooks import Hook
from mmengine.logging import MessageHub
from mmengine.registry import HOOKS

from mmseg_cct.engine.hooks import DurableCheckpointHook
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


@pytest.mark.slow
def test_a_validation_that_the_checkpoint_knows_is_not_repeated(cct):
    options = {'train_cfg.val_interval': 1, 'default_hooks.checkpoint.save_best': 'mIoU'}
    options['default_hooks.checkpoint.interval'] = 1
    cct.train('first', options={**options, 'train_cfg.max_iters': 1})
    resumed = str(cct.folder / 'first/iter_1.pth')
    cct.train('second', options={**options, 'train_cfg.max_iters': 2}, resume=resumed)
    hub = cct.load(cct.folder / 'second/iter_2.pth')['message_hub']
    assert len(hub['log_scalars']['val/mIoU'].data[0]) == 2  # of 1, which it knew, and 2


@pytest.mark.parametrize('save_best', ['mIoU', ['aAcc', 'mIoU']])
@pytest.mark.parametrize(
    ('name', 'goes'),
    [
        ('best_mIoU_iter_9.pth', True),
        ('best_mIoU_iter_10.pth', False),  # a repeated validation wrote it again
        ('notes.txt', False),
    ],
)
def test_the_best_before_is_removed_in_the_own_folder_alone(tmp_path, save_best, name, goes):
    """The path comes from the checkpoint of a training that was resumed, moved or of a stranger."""
    own, other = tmp_path / 'work' / name, tmp_path / 'elsewhere' / name
    hub = MessageHub.get_instance(world.experiment())
    for file in (own, other):
        file.parent.mkdir()
        file.touch()
    for key in ('best_ckpt', 'best_ckpt_mIoU'):
        hub.update_info(key, str(other))
    hook = DurableCheckpointHook(interval=1, by_epoch=False, save_best=save_best)
    runner = runner_in(own.parent, hub)
    hook.before_train(runner)
    runner.iter = 10
    hook.after_val_epoch(runner, dict(mIoU=1.0, aAcc=1.0))
    assert (own.parent / 'best_mIoU_iter_10.pth').exists() and other.exists()
    assert own.exists() != goes
