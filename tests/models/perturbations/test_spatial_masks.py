"""Masks of positions: F-Drop, then G-Cutout, then Con-Msk and Obj-Msk."""

from types import SimpleNamespace

import pytest
import tiny
import torch
import torch.nn.functional as F

from mmseg_cct.models.perturbations import FeatureDrop, GuidedCutout, PerturbationContext
from mmseg_cct.models.perturbations.spatial_masks import random_crops


def test_draws_each_threshold_uniformly_for_each_image_and_decoder():
    # attention rises evenly from 0 to 1, so the share of positions kept is γ itself
    num_images, k = 40, 50
    z = torch.linspace(0, 1, 1001).expand(num_images, 1, 1, -1)
    shared = PerturbationContext(z, torch.zeros(num_images, 2, 1, 1001), [0])
    kept = tiny.perturb(FeatureDrop(k, (0.6, 0.9)), shared) > 0
    gamma = kept.float().mean(-1).flatten()
    assert gamma.min() >= 0.599 and gamma.max() <= 0.901
    assert gamma.mean() == pytest.approx(0.75, abs=0.01)
    assert len(gamma.unique()) > 200


def test_features_below_zero_are_dropped_by_their_size_and_a_dead_image_stays_finite():
    """As those of a neck without a ReLU, where the largest channel mean may be negative."""
    z = -torch.linspace(0.1, 1, 10).expand(2, 3, 1, -1).clone()
    z[1] = 0
    shared = PerturbationContext(z, torch.zeros(2, 2, 1, 10), [0])
    dropped = (tiny.perturb(FeatureDrop(1, (0.75, 0.75)), shared) == 0).all(2)[0]
    assert dropped.tolist() == [[False] * 7 + [True] * 3, [True] * 10]


def with_boxes(boxes, num_images=1, size=(12, 16), stride=1):
    """A context of constant features with given boxes."""
    z = torch.ones(num_images, 1, *size)
    seg_logits = torch.zeros(num_images, 2, size[0] * stride, size[1] * stride)
    shared = PerturbationContext(z, seg_logits, [0])
    object_boxes = torch.tensor(boxes, dtype=torch.int64).reshape(-1, 5)
    shared.objects = SimpleNamespace(boxes=lambda min_side: object_boxes)
    return shared


def kept(shared, k, ratio=0.4):
    """Masks `(k, N, h, w)`."""
    drawn = tiny.perturb(GuidedCutout(k, ratio), shared)
    return drawn[:, :, 0].unflatten(-1, shared.features.shape[-2:])


def test_crops_lie_in_their_boxes_and_have_the_share_of_their_side():
    low = torch.randint(0, 300, (400,))
    high = low + torch.randint(8, 400, (400,))
    for ratio in (0.0, 0.4, 0.5, 1.0):
        start, end = random_crops(low, high, ratio, 50)
        assert start.shape == end.shape == (50, 400)
        assert (start >= low).all() and (end <= high).all()
        expected = torch.tensor([int(ratio * side) for side in (high - low).tolist()])
        assert (end - start == expected).all()


def test_every_place_in_the_box_is_equally_likely():
    start, end = random_crops(torch.tensor([5]), torch.tensor([15]), 0.4, 7000)
    places, counts = start.unique(return_counts=True)
    assert places.tolist() == list(range(5, 12))  # 7 places for 4 of 10 pixels
    assert (counts - 1000).abs().max() < 5 * 1000**0.5
    assert (end - start == 4).all()


@pytest.mark.parametrize('stride', [1, 4])
def test_mask_is_the_nearest_resized_mask_of_the_drawn_crops(stride):
    size, k = (12, 16), 4
    boxes = [
        (0, 0, 0, 9 * stride, 12 * stride),
        (0, 5 * stride, 2, 16 * stride, 10 * stride),
        (2, stride, stride, 12 * stride, 9 * stride),
    ]
    shared = with_boxes(boxes, num_images=3, size=size, stride=stride)
    actual = kept(shared, k)

    torch.manual_seed(5)
    image, left, top, right, bottom = shared.objects.boxes(4.0).T
    left, right = random_crops(left, right, 0.4, k)
    top, bottom = random_crops(top, bottom, 0.4, k)
    expected = torch.ones(k, 3, size[0] * stride, size[1] * stride)
    for decoder in range(k):
        for i, n in enumerate(image.tolist()):
            rows = slice(top[decoder, i], bottom[decoder, i])
            expected[decoder, n, rows, left[decoder, i] : right[decoder, i]] = 0
    assert torch.equal(actual, F.interpolate(expected, size, mode='nearest'))
    assert (actual[:, 1] == 1).all()  # no object, no cut


def test_many_crops_of_one_place_are_still_a_cut():
    masks = kept(with_boxes([(0, 0, 0, 16, 12)] * 256), 1, ratio=1.0)  # 256 = 0 in eight bits
    assert (masks == 0).all()


def test_objects_below_the_least_side_in_positions_are_not_cut():
    seg_logits = torch.zeros(1, 2, 48, 64)
    seg_logits[:, 1, 4:10, 8:14] = 1  # 6×6 pixels are 1.5 positions of 4×4
    shared = PerturbationContext(torch.ones(1, 1, 12, 16), seg_logits, [0])
    for least, is_cut in ((1.0, True), (1.5, True), (2.0, False)):
        drawn = tiny.perturb(GuidedCutout(1, side_ratio=1.0, min_box_side=least), shared)
        assert (drawn == 0).any() == is_cut


def test_a_tie_is_context():
    shared = PerturbationContext(torch.ones(1, 1, 1, 1), torch.zeros(1, 3, 1, 1), [2])
    assert not shared.objects.foreground.any()
