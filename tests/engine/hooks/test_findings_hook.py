"""Log lines that describe a training and its outcome."""

from types import SimpleNamespace

import pytest
import tiny
import torch
from mmengine.config import Config
from mmengine.logging import MessageHub
from mmseg.registry import MODELS

from mmseg_cct.engine.hooks import findings_hook
from mmseg_cct.engine.hooks.findings_hook import FindingsHook, describe_model


@pytest.fixture
def runner():
    same = dict(type='FolderDataset', image_dir='x')
    config = Config({f'{split}_dataloader': dict(dataset=dict(same)) for split in ('val', 'test')})
    object.__setattr__(config, '_filename', 'configs/cct_tiny.py')
    return SimpleNamespace(
        model=MODELS.build(tiny.model_config()),
        cfg=config,
        val_loop=object(),
        train_dataloader=SimpleNamespace(dataset=SimpleNamespace(labeled=[0] * 12), batch_size=8),
        val_dataloader=SimpleNamespace(dataset=[0] * 7),
        message_hub=MessageHub('findings'),
        work_dir='work_dirs/x',
        iter=0,
        max_iters=100,
    )


def test_the_model_is_named_with_its_size_and_place(runner, monkeypatch):
    monkeypatch.setattr(findings_hook, 'get_device', lambda: 'cpu')
    monkeypatch.setattr(torch, 'get_num_threads', lambda: 3)
    line = describe_model(runner)
    assert line.startswith('Model: CCTSegmentor and ResNet and PixelShuffleHead, 0.0 million')
    assert line.endswith('by cct, on the CPU (threads: 3); log and checkpoints in work_dirs/x')


def test_the_start_tells_of_few_images_and_the_test_set(runner, messages):
    def told():
        messages.clear()
        FindingsHook().before_train(runner)
        return messages[1:]

    few, same = told()
    assert few.startswith('Note: only 7 validation images') and 'are the test set too' in same
    runner.cfg.test_dataloader.dataset.image_dir = 'y'
    runner.val_dataloader.dataset = [0] * 20
    assert not told()
    runner.train_dataloader.batch_size = 16
    assert told() == ['Note: a batch of 16 repeats some of the 12 labelled images']
    runner.train_dataloader.batch_size = 8
    runner.val_loop = None
    assert not told()


def test_the_end_tells_of_classes_at_0_and_of_a_rising_curve(runner, messages):
    for miou in (10.0, 12.0, 15.0):
        runner.message_hub.update_scalar('val/mIoU', miou)
    for name, iou in (('road', 30.0), ('pole', 0.0)):
        runner.message_hub.update_scalar(f'val/IoU.{name}', iou)
    FindingsHook().after_train(runner)
    zero, rising = messages
    assert zero.endswith('1 of 2 classes at IoU 0, no pixel found: pole')
    assert rising.startswith('Note: mIoU rose by 3.0 points in the last third')


def test_a_training_without_validation_ends_without_a_word(runner, messages):
    runner.message_hub = MessageHub('nothing')
    FindingsHook().after_train(runner)
    assert not messages


def test_the_end_names_the_next_commands(runner, messages, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner.message_hub = MessageHub('next')
    runner.work_dir = str(tmp_path)
    (tmp_path / 'cct_tiny.py').touch()
    FindingsHook().after_train(runner)
    assert not messages  # no checkpoint
    (tmp_path / 'iter_4.pth').touch()
    (tmp_path / 'best_mIoU_iter_2.pth').touch()
    FindingsHook().after_train(runner)
    first, predict, report = messages.pop().split('\n  ')
    assert first == 'Next:'
    assert ' predict cct_tiny.py iter_4.pth IMAGES --out predictions' in predict
    assert ' report cct=. --out report' in report
    runner.message_hub.update_info('best_ckpt', f'{tmp_path}/best_mIoU_iter_2.pth')
    FindingsHook().after_train(runner)
    assert ' best_mIoU_iter_2.pth IMAGES' in messages.pop()
    runner.model = torch.nn.Linear(1, 1)  # such as a classifier
    FindingsHook().after_train(runner)
    assert not messages
