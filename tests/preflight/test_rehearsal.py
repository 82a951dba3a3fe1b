"""The first validation batch before a training."""

import random
from contextlib import nullcontext
from itertools import chain
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.dataset import pseudo_collate
from mmengine.evaluator import DumpResults, Evaluator
from mmengine.structures import PixelData
from mmseg.evaluation import IoUMetric
from mmseg.structures import SegDataSample
from torch import nn

from mmseg_cct.engine.metrics import MultiDomainIoUMetric
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.preflight_hook import rehearse_validation


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
    metainfo = dict(classes=('road', 'car'), palette=[[0, 0, 0], [255, 0, 0]])


def sample(truth=(4, 6), domain='a'):
    packed = SegDataSample(metainfo=dict(img_path='v0.png', ori_shape=(4, 6), domain=domain))
    if truth:
        packed.gt_sem_seg = PixelData(data=torch.zeros(1, *truth, dtype=torch.long))
    return dict(inputs=torch.zeros(3, 4, 6), data_samples=packed)


def runner_of(samples=None, metric=None):
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


VAL = 'val_dataloader.dataset'


@pytest.mark.parametrize(
    ('arguments', 'key'),
    [
        (dict(), None),
        (dict(metric=IoUMetric(iou_metrics='IoU')), VAL),
        (dict(metric=IoUMetric(format_only=True), samples=[sample(None)]), None),
        (dict(metric=DumpResults('never.pkl')), None),  # would write
        (dict(samples=domains()), None),
        (dict(samples=domains((2, 3))), f'{VAL}.domains.b'),
        (dict(samples=[sample((2, 3))]), VAL),  # a mask of another size than the prediction
        (dict(samples=[[1], [1, 2]]), VAL),  # images that make no batch
    ],
)
def test_what_can_and_what_cannot_be_validated(arguments, key):
    with pytest.raises(UserError) if key else nullcontext() as caught:
        rehearse_validation(runner_of(**arguments))
    assert not key or caught.value.problems[0].key == key
