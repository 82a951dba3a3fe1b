import random
from contextlib import nullcontext
from itertools import chain
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from mmengine.dataset import pseudo_collate
from mmengine.evaluator import DumpResults, Evaluator
from mmengine.hooks import CheckpointHook, EarlyStoppingHook
from mmengine.structures import PixelData
from mmseg.datasets import BaseSegDataset
from mmseg.engine.hooks import SegVisualizationHook
from mmseg.evaluation import IoUMetric
from mmseg.structures import SegDataSample
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader

from mmseg_cct.engine.metrics import ClassIoUMetric, MultiDomainIoUMetric
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.rehearsal import batch_problems, rehearse_validation

CLASSES = ('road', 'car')


class Model(nn.Module):
    """Predicts class 0, and draws on each random generator as some models do."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(3)
        self.modes = []

    def val_step(self, batch):
        self.modes.append((self.training, torch.is_grad_enabled()))
        random.random(), np.random.rand(), torch.rand(1)
        self.norm(torch.stack(batch['inputs']).float())
        for sample in batch['data_samples']:
            data = torch.zeros(1, *sample.metainfo['ori_shape'], dtype=torch.long)
            sample.pred_sem_seg = PixelData(data=data)
        return batch['data_samples']


class Set(list):
    metainfo = dict(classes=CLASSES, palette=[[0, 0, 0], [255, 0, 0]])


def sample(truth=(4, 6), domain='a', path='v0.png'):
    packed = SegDataSample(metainfo=dict(img_path=path, ori_shape=(4, 6), domain=domain))
    if truth:
        packed.gt_sem_seg = PixelData(data=torch.zeros(1, *truth, dtype=torch.long))
    return dict(inputs=torch.zeros(3, 4, 6), data_samples=packed)


def runner_of(samples=None, metric=None, save_best=None):
    """A runner whose validation set is of these samples, or of those of several domains."""
    metric = metric or IoUMetric()
    dataset = Set(samples or [sample(), sample()])
    batch_size = len(samples) if samples else 1
    if isinstance(samples, dict):  # of several domains, one after the other
        dataset, batch_size = Set(chain(*samples.values())), 1
        dataset.domains, metric = samples, MultiDomainIoUMetric()
        dataset.metainfo = dict(domains=dict.fromkeys(samples, Set.metainfo))
    evaluator = Evaluator(metric)
    evaluator.dataset_meta = dataset.metainfo
    return SimpleNamespace(
        model=Model().train(),
        val_dataloader=SimpleNamespace(
            dataset=dataset, batch_size=batch_size, collate_fn=pseudo_collate
        ),
        val_loop=SimpleNamespace(evaluator=evaluator, fp16=False),
        hooks=[CheckpointHook(save_best=save_best, rule=save_best and 'greater')],
    )


def domains(truth=(4, 6)):
    return dict(a=[sample(), sample(None)], b=[sample(truth, 'b')])


def random_state():
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()


def test_it_leaves_no_trace(tmp_path):
    metric = IoUMetric(output_dir=str(tmp_path))
    runner, before = runner_of(metric=metric), random_state()
    weights = {key: value.clone() for key, value in runner.model.state_dict().items()}
    rehearse_validation(runner)
    assert random_state() == before
    assert runner.model.modes == [(False, False)]
    assert runner.model.training and runner.model.norm.training
    for key, value in runner.model.state_dict().items():
        assert torch.equal(value, weights[key])
    assert (metric.results, metric.output_dir) == ([], str(tmp_path))
    assert list(tmp_path.iterdir()) == []


VAL, BEST = 'val_dataloader.dataset', 'default_hooks.checkpoint.save_best'


@pytest.mark.parametrize(
    ('arguments', 'key'),
    [
        *((dict(save_best=key), None) for key in ('mIoU', 'auto')),
        (dict(metric=ClassIoUMetric(), save_best='F1.car'), None),  # of other images
        (dict(metric=ClassIoUMetric(), save_best='IoU.dog'), f"{BEST}='IoU.dog'"),
        (dict(metric=IoUMetric(prefix='val'), save_best='val/mIoU'), None),
        (dict(metric=IoUMetric(prefix='val'), save_best='mIoU'), f"{BEST}='mIoU'"),
        (dict(metric=IoUMetric(iou_metrics='IoU')), VAL),
        (dict(metric=IoUMetric(format_only=True), samples=[sample(None)], save_best='x'), None),
        (dict(metric=DumpResults('never.pkl'), save_best='theirs'), None),  # would write
        *((dict(samples=domains(), save_best=key), None) for key in ('b/mIoU', 'mIoU_avg')),
        (dict(samples=domains(), save_best='c/mIoU'), f"{BEST}='c/mIoU'"),
        (dict(samples=domains((2, 3))), f'{VAL}.domains.b'),
        (dict(samples=[sample((2, 3))]), VAL),  # a mask of another size than the prediction
        (dict(samples=[[1], [1, 2]]), VAL),  # images that make no batch
    ],
)
def test_what_can_and_what_cannot_be_validated(arguments, key):
    with pytest.raises(UserError) if key else nullcontext() as caught:
        rehearse_validation(runner_of(**arguments))
    assert not key or caught.value.problems[0].key == key


def test_early_stopping_waits_for_a_metric_that_there_is():
    runner = runner_of()
    runner.hooks = [EarlyStoppingHook('mIoU'), EarlyStoppingHook('IoU.car', rule='greater')]
    with pytest.raises(UserError) as caught:
        rehearse_validation(runner)
    assert [each.key for each in caught.value.problems] == ["EarlyStoppingHook.monitor='IoU.car'"]


def test_the_visualizer_draws_and_keeps_nothing(tmp_path):
    def draw(*_, show, **__):
        assert not show and not pictures._vis_backends
        raise KeyError('palette')

    pictures = SimpleNamespace(_vis_backends={'disk': None}, add_datasample=draw)
    hook = SegVisualizationHook.__new__(SegVisualizationHook)
    vars(hook).update(draw=True, interval=50, show=True, wait_time=0, backend_args=None)
    hook._visualizer = pictures
    cv2.imwrite(str(tmp_path / 'v0.png'), np.zeros((4, 6, 3), np.uint8))
    runner = runner_of([sample(path=str(tmp_path / 'v0.png'))])
    runner.iter, runner.hooks = 7, [hook]
    with pytest.raises(KeyError, match='palette'):
        rehearse_validation(runner)
    assert list(pictures._vis_backends) == ['disk']
    assert (hook.interval, hook.show) == (50, True)


def test_no_metric_waits_for_a_class_that_no_validation_mask_shows():
    runner = runner_of(metric=ClassIoUMetric(), save_best='IoU.car')
    rehearse_validation(runner)
    with pytest.raises(UserError, match='no validation mask shows this class'):
        rehearse_validation(runner, absent=['car'])


def loader_of(folder, sizes, batch_size):
    for index, (width, height) in enumerate(sizes):
        Image.new('RGB', (width, height)).save(folder / f'{index}.png')
    resize = dict(type='Resize', scale=(32, 32), keep_ratio=True)
    dataset = BaseSegDataset(
        img_suffix='.png',
        metainfo=dict(classes=('a', 'b')),
        data_prefix=dict(img_path=str(folder)),
        pipeline=[dict(type='LoadImageFromFile'), resize, dict(type='PackSegInputs')],
        test_mode=True,
    )
    return DataLoader(dataset, batch_size)


@pytest.mark.parametrize(
    ('sizes', 'batch_size', 'keys'),
    [
        ([(64, 32), (32, 16), (32, 32)], 2, []),  # resized alike, and the last one is alone
        ([(64, 32), (32, 32)], 1, []),
        ([(64, 32), (64, 32), (32, 32), (64, 32)], 2, ['val_dataloader.batch_size=2']),
    ],
)
def test_a_batch_has_one_size(sizes, batch_size, keys, tmp_path):
    problems = batch_problems(loader_of(tmp_path, sizes, batch_size), 'val_dataloader')
    assert [problem.key for problem in problems] == keys
