"""Each loss that the package ships, or adds from MMSeg, where next to nothing is labelled."""

import pytest
import torch
from mmseg.registry import MODELS

from mmseg_cct.models import losses
from mmseg_cct.models.losses import PixelTargets

IGNORED = 255
N, C, H, W, K = 2, 4, 3, 5, 2
LOSSES = [name for name in losses.__all__ if name in MODELS.module_dict]


def labelled(size):
    """Labels `(N, H, W)` of one class, so that others are absent."""
    label = torch.full((N, H, W), IGNORED)
    label[{'none': slice(0), 'one pixel': (0, 1, 2), 'one image': 0, 'one class': ...}[size]] = 1
    return label


def value_of(loss, logits, label):
    valid = (label != IGNORED).unsqueeze(1)
    if hasattr(loss, 'targets'):  # of confident predictions
        return loss(logits, loss.targets(logits.flip(0), valid))
    if not hasattr(loss, 'term'):
        return loss(logits, label, ignore_index=IGNORED)
    main = logits.detach().flip(0)
    term = loss.term(PixelTargets(main, label.unsqueeze(1), K, stride=1, valid=valid))
    target = main.softmax(1) if term.labels is None else term.labels
    target, weight = (part.transpose(0, 1).flatten(2) for part in (target, term.pixel_weight))
    decoders = torch.stack([logits, 2 * logits]).transpose(1, 2).flatten(3)
    return term.scale * (term.distance(decoders, target) * weight).sum()


@pytest.mark.parametrize('size', ['none', 'one pixel', 'one image', 'one class'])
@pytest.mark.parametrize('name', [*LOSSES, 'CrossEntropyLoss'])
def test_a_loss_and_its_gradient_are_finite(name, size):
    torch.manual_seed(0)
    logits, label = torch.randn(N, C, H, W, requires_grad=True), labelled(size)
    loss = value_of(MODELS.build(dict(type=name)), logits, label)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss.isfinite() and gradient.isfinite().all()
    if size == 'none':
        assert loss == 0 and not gradient.any()


def test_lovasz_of_one_pixel_is_one_minus_the_probability_of_its_class():
    logits, label = torch.randn(N, C, H, W), labelled('one pixel')
    loss = value_of(losses.BatchLovasz(), logits, label)
    torch.testing.assert_close(loss, 1 - logits.softmax(1)[0, 1, 1, 2])
