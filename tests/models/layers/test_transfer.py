"""What is drawn or set on the host reaches a GPU without a wait."""

import pytest
import torch
from dispatch import HostWaits
from torch._subclasses.fake_tensor import FakeTensorMode

from mmseg_cct.models import BootstrappedCrossEntropy, MeanCrossEntropy
from mmseg_cct.models.layers import cutmix
from mmseg_cct.models.layers.channel_dropout import ComplementaryDropout
from mmseg_cct.models.layers.transfer import to_host

CLASS_WEIGHT = [1.0, 2.0, 0.5]


def loss(kind):
    return lambda logits, label: kind(class_weight=CLASS_WEIGHT)(logits, label, ignore_index=255)


STEPS = {
    'cutmix': lambda logits, _: cutmix.CutMix(1.0)(logits),
    'dropout': lambda logits, _: ComplementaryDropout()([logits], [logits]),
    'ab-CE': loss(BootstrappedCrossEntropy),
    'CE': loss(MeanCrossEntropy),
}


@pytest.mark.parametrize(
    ('name', 'waits'),
    [
        ('cutmix', []),
        ('dropout', []),
        ('ab-CE', []),
        ('CE', ['_to_copy']),  # by MMSeg's own part of the loss
    ],
)
def test_the_host_does_not_wait(name, waits, monkeypatch):
    # its loop looks at what it draws, which fake tensors lack
    monkeypatch.setattr(cutmix, 'draw_boxes', lambda n, *_: torch.zeros(n, 4, dtype=torch.int64))
    with FakeTensorMode(), torch.device('cuda'):
        logits, label = torch.empty(4, 3, 8, 8), torch.empty(4, 8, 8, dtype=torch.int64)
    with logits.fake_mode, HostWaits() as host:
        STEPS[name](logits, label)
    assert host.names == waits


@pytest.mark.gpu
@pytest.mark.parametrize('name', ['cutmix', 'dropout', 'ab-CE'])
def test_cuda_reports_no_wait(name):
    logits = torch.rand(4, 3, 8, 8, device='cuda')
    label = torch.randint(3, (4, 8, 8), device='cuda')
    STEPS[name](logits, label)  # a first call sets CUDA up
    torch.cuda.set_sync_debug_mode('error')
    try:
        STEPS[name](logits, label)
    finally:
        torch.cuda.set_sync_debug_mode('default')


@pytest.mark.gpu
def test_a_gpu_copies_while_the_host_goes_on():
    values = torch.rand(4, 512, 512, device='cuda')
    torch.cuda.set_sync_debug_mode('error')
    try:
        copied = to_host(values)
        values = values + 1  # queued behind the copy
    finally:
        torch.cuda.set_sync_debug_mode('default')
    torch.testing.assert_close(copied(), values.cpu() - 1)
