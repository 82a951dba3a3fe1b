import itertools

import pytest
import tiny
import torch
import torch.nn.functional as F

from mmseg_cct.models.perturbations import ContextMasking, ObjectMasking, PerturbationContext


def naive_foreground(seg_logits, context_classes):
    """`(N, H, W)`, pixel by pixel."""
    n, _, height, width = seg_logits.shape
    mask = torch.zeros(n, height, width)
    for image, y, x in itertools.product(range(n), range(height), range(width)):
        scores = seg_logits[image, :, y, x].tolist()
        mask[image, y, x] = scores.index(max(scores)) not in context_classes
    return mask


@pytest.mark.parametrize('context_classes', [(0,), (2,), (0, 3), (3, 1, 2)])
@pytest.mark.parametrize('stride', [1, 2, 4, 8])
def test_masks_are_the_nearest_resized_prediction(context_classes, stride):
    shared = tiny.context(num_images=2, stride=stride, context_classes=context_classes)
    z = shared.features
    mask = naive_foreground(shared.seg_logits, context_classes).unsqueeze(1)
    mask = F.interpolate(mask, z.shape[-2:], mode='nearest')
    assert 0 < mask.mean() < 1
    for cls, expected in ((ContextMasking, z * mask), (ObjectMasking, z * (1 - mask))):
        perturbed = tiny.perturb(cls(2), shared).unflatten(-1, z.shape[-2:])
        assert torch.equal(perturbed, expected.expand_as(perturbed))


@pytest.mark.parametrize(('context_classes', 'share'), [((), 1), ((0, 1, 2, 3), 0)])
def test_no_context_class_means_all_objects_and_all_context_classes_none(context_classes, share):
    shared = tiny.context(context_classes=context_classes)
    assert (shared.foreground == share).all()
    z = shared.features.flatten(2)
    assert torch.equal(tiny.perturb(ContextMasking(1), shared)[0], z * share)
    assert torch.equal(tiny.perturb(ObjectMasking(1), shared)[0], z * (1 - share))


def test_a_tie_is_context():
    shared = PerturbationContext(torch.ones(1, 1, 1, 1), torch.zeros(1, 3, 1, 1), [2])
    assert not shared.foreground.any()
