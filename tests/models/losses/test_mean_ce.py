"""Against MMSeg's own loss, whose host waits for the number of labelled pixels."""

import pytest
import torch
import torch.nn.functional as F
from mmseg.models.losses import CrossEntropyLoss

from mmseg_cct.models import MeanCrossEntropy

N, C, H, W = 2, 3, 4, 5


@pytest.fixture
def batch():
    torch.manual_seed(0)
    label = torch.randint(C, (N, H, W))
    label[0, :2] = 255
    return torch.randn(N, C, H, W, requires_grad=True), label


@pytest.mark.parametrize(
    'options',
    [
        {},
        dict(loss_weight=0.5),
        dict(class_weight=[1.0, 2.0, 0.5], reduction='sum'),
        dict(avg_non_ignore=False),
        dict(reduction='sum'),
    ],
)
def test_values_and_gradients_are_mmsegs(batch, options):
    logits, label = batch
    weight = torch.rand(N, H, W)
    for pixels in (None, weight):
        values = []
        for kind, extra in ((MeanCrossEntropy, {}), (CrossEntropyLoss, dict(avg_non_ignore=True))):
            loss = kind(**{**extra, **options})(logits, label, weight=pixels, ignore_index=255)
            values.append((loss, *torch.autograd.grad(loss, logits)))
        for own, theirs in zip(*values):
            torch.testing.assert_close(own, theirs)


def test_class_weights_weigh_the_mean(batch):
    logits, label = batch
    weights = [1.0, 2.0, 0.5]
    loss = MeanCrossEntropy(class_weight=weights)(logits, label, ignore_index=255)
    expected = F.cross_entropy(logits, label, torch.tensor(weights), ignore_index=255)
    torch.testing.assert_close(loss, expected)


def test_no_labelled_pixel_gives_zero(batch):
    logits, label = batch
    assert MeanCrossEntropy()(logits, torch.full_like(label, 255), ignore_index=255) == 0
