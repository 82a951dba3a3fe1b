import pytest
import torch
from dispatch import HostWaits
from torch._subclasses.fake_tensor import FakeTensorMode

from mmseg_cct.models import BootstrappedCrossEntropy, MeanCrossEntropy
from mmseg_cct.models.layers import cutmix
from mmseg_cct.models.layers.channel_dropout import ComplementaryDropout

CLASS_WEIGHT = [1.0, 2.0, 0.5]


def loss(class_name):
    return lambda logits, label: class_name(class_weight=CLASS_WEIGHT)(
        logits, label, ignore_index=255
    )


STEPS = {
    'cutmix': lambda logits, _: cutmix.CutMix(1.0)(logits),
    'dropout': lambda logits, _: ComplementaryDropout()([logits], [logits]),
    'ab-CE': loss(BootstrappedCrossEntropy),
    'CE': loss(MeanCrossEntropy),
}


@pytest.mark.parametrize('name', STEPS)
def test_the_host_does_not_wait(name, monkeypatch):
    # its loop looks at what it draws, which fake tensors lack
    monkeypatch.setattr(cutmix, 'draw_boxes', lambda n, *_: torch.zeros(n, 4, dtype=torch.int64))
    with FakeTensorMode(), torch.device('cuda'):
        logits, label = torch.empty(4, 3, 8, 8), torch.empty(4, 8, 8, dtype=torch.int64)
    with logits.fake_mode, HostWaits() as host:
        STEPS[name](logits, label)
    # for CE by MMSeg's own part of the loss
    assert host.names == (['_to_copy'] if name == 'CE' else [])
