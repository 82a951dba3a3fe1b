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

from mmseg_cct.engine import checkpoints
from mmseg_cct.engine.hooks import DurableCheckpointHook
from mmseg_cct.engine.hooks.durable_checkpoint_hook import VALIDATED
from mmseg_cct.errors import UserError


def test_the_old_checkpoint_goes_only_after_the_new_one_is_there(cct, monkeypatch):
    real, present = checkpoints.AtomicLocalBackend.put, []

    def put(self, data, path):
        present.append(sorted(p.name for p in (cct.folder / 'work').glob('*iter_*.pth')))
        real(self, data, path)

    monkeypatch.setattr(checkpoints.AtomicLocalBackend, 'put', put)
    checkpoint = {'max_keep_ckpts': 1, 'interval': 1}
    options = {f'default_hooks.checkpoint.{name}': value for name, value in checkpoint.items()}
    cct.train(options={**options, 'train_cfg.max_iters': 3})
    assert present == [[], ['iter_1.pth'], ['iter_2.pth']]
    assert [p.name for p in (cct.folder / 'work').glob('iter_*.pth')] == ['iter_3.pth']


def test_a_checkpoint_that_is_written_again_is_kept(tmp_path):
    """After a kill between two steps of the optimizer, a training goes back and repeats some."""
    runner = SimpleNamespace(
        model=torch.nn.Linear(1, 1),
        work_dir=str(tmp_path),
        message_hub=MessageHub.get_instance(world.experiment()),
        logger=logging.getLogger(__name__),
        max_iters=100,
        epoch=0,
        save_checkpoint=lambda folder, name, *_, **__: torch.save({}, Path(folder, name)),
    )
    for iterations in (range(7), range(4, 7)):  # four make a step
        hook = DurableCheckpointHook(interval=1, by_epoch=False, max_keep_ckpts=3)
        hook.before_train(runner)
        for runner.iter in iterations:
            hook.after_train_iter(runner, runner.iter)
            assert (tmp_path / f'iter_{runner.iter + 1}.pth').exists()
    assert len(list(tmp_path.glob('iter_*.pth'))) == 3


def test_without_an_interval_of_its_own_a_checkpoint_is_written_where_it_validates(cct):
    del cct.config.default_hooks.checkpoint['interval']
    cct.write()
    cct.train(options={'train_cfg.val_interval': 3})
    names = sorted(path.name for path in (cct.folder / 'work').glob('iter_*.pth'))
    assert names == ['iter_3.pth', 'iter_6.pth']


@pytest.mark.parametrize('save_best', [None, 'mIoU'])
def test_weights_that_overflowed_are_not_saved_and_the_last_good_ones_stay(cct, save_best):
    settings = dict(interval=2 if save_best else 1, max_keep_ckpts=1, save_best=save_best)
    cct.config.default_hooks.checkpoint.update(settings)
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


class TestBestCheckpoint:
    """A resumed training whose validations score ever higher."""

    OPTIONS = {'train_cfg.val_interval': 2, 'default_hooks.checkpoint.save_best': 'mIoU'}

    @pytest.fixture(autouse=True)
    def rising_scores(self, monkeypatch):
        scores = itertools.count(1.0)
        compute = IoUMetric.compute_metrics
        monkeypatch.setattr(
            IoUMetric,
            'compute_metrics',
            lambda self, results: {**compute(self, results), 'mIoU': next(scores)},
        )

    def best(self, cct, name):
        return [p.name for p in (cct.folder / name).glob('best_*')]

    def test_that_of_the_first_training_stays_and_its_validation_is_not_repeated(self, cct):
        cct.train('first', options={**self.OPTIONS, 'train_cfg.max_iters': 2})
        first = cct.folder / 'first/iter_2.pth'
        cct.train('second', options=self.OPTIONS, resume=str(first))
        assert self.best(cct, 'first') == ['best_mIoU_iter_2.pth']
        assert self.best(cct, 'second') == ['best_mIoU_iter_6.pth']
        hub = cct.load(cct.folder / 'second/iter_6.pth')['message_hub']
        assert len(hub['log_scalars']['val/mIoU'].data[0]) == 3  # of 2, which it knew, 4 and 6

    def test_that_of_a_repeated_validation_stays(self, cct):
        options = {**self.OPTIONS, 'train_cfg.max_iters': 2}
        cct.train(options=options)
        file = cct.folder / 'work/iter_2.pth'
        content = cct.load(file)
        del content['message_hub']['runtime_info'][VALIDATED]  # as if killed before the best
        torch.save(content, file)
        cct.train(options=options, resume='auto')
        assert self.best(cct, 'work') == ['best_mIoU_iter_2.pth']

    def test_no_other_file_is_removed(self, cct):
        options = self.OPTIONS
        cct.train(options={**options, 'train_cfg.max_iters': 2})
        start = cct.folder / 'work/iter_2.pth'
        content = cct.load(start)
        elsewhere = cct.folder / 'elsewhere'
        elsewhere.mkdir()
        names = ['notes.txt', 'best_mIoU_iter_9.pth']
        for index, file in enumerate(elsewhere / name for name in names):
            for folder in (elsewhere, cct.folder / f'work{index}'):
                folder.mkdir(exist_ok=True)
                (folder / 'notes.txt').touch()
            file.touch()
            content['message_hub']['runtime_info']['best_ckpt'] = str(file)
            torch.save(content, start)
            cct.train(f'work{index}', options=options, resume=str(start))
            assert file.exists() and (cct.folder / f'work{index}/notes.txt').exists()
            assert self.best(cct, f'work{index}') == ['best_mIoU_iter_6.pth']
