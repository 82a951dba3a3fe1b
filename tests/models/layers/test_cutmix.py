import itertools

import pytest
import torch

from mmseg_cct.models import CutMix
from mmseg_cct.models.layers.cutmix import draw_boxes, fill_boxes, paste

SIZE = (48, 64)


def naive_masks(boxes, size):
    masks = torch.zeros(len(boxes), 1, *size, dtype=torch.bool)
    for mask, (left, top, right, bottom) in zip(masks, boxes.tolist()):
        for y, x in itertools.product(range(top, bottom), range(left, right)):
            mask[0, y, x] = True
    return masks


def naive_paste(values, masks):
    mixed = values.clone()
    for i, _, y, x in masks.nonzero().tolist():
        mixed[i, ..., y, x] = values[len(values) - 1 - i, ..., y, x]
    return mixed


def test_boxes_follow_the_rule():
    boxes = draw_boxes(4000, SIZE, generator=torch.Generator().manual_seed(0))
    left, top, right, bottom = boxes.unbind(1)
    assert (left >= 0).all() and (top >= 0).all()
    assert (right <= SIZE[1]).all() and (bottom <= SIZE[0]).all()
    width, height = (right - left).double(), (bottom - top).double()
    # whole pixels: each side is cut by less than one
    area = SIZE[0] * SIZE[1]
    assert (width * height <= 0.4 * area).all()
    assert ((width + 1) * (height + 1) >= 0.02 * area).all()
    assert (height / (width + 1) <= 3.33).all() and ((height + 1) / width >= 0.3).all()
    # the area is uniform in [0.02, 0.4]; the cuts take about a twentieth
    for quantile in (0.25, 0.5, 0.75):
        expected = 0.02 + 0.38 * quantile
        found = ((width + 0.5) * (height + 0.5) / area).quantile(quantile)
        assert found == pytest.approx(expected, abs=0.015)
    # boxes reach every corner of the image
    assert left.min() == top.min() == 0 and right.max() == SIZE[1] and bottom.max() == SIZE[0]


def test_boxes_match_drawing_until_one_fits():
    """The share of aspects above 1 and the mean corner, against the rule's own loop."""
    generator = torch.Generator().manual_seed(1)

    def uniform(low, high):
        return low + (high - low) * torch.rand((), generator=generator).item()

    naive = []
    for _ in range(3000):
        pixels = uniform(0.02, 0.4) * SIZE[0] * SIZE[1]
        while True:
            aspect = uniform(0.3, 3.33)
            height, width = int((pixels * aspect) ** 0.5), int((pixels / aspect) ** 0.5)
            left, top = int(uniform(0, SIZE[1])), int(uniform(0, SIZE[0]))
            if left + width <= SIZE[1] and top + height <= SIZE[0]:
                naive.append([left, top, left + width, top + height])
                break
    drawn = draw_boxes(3000, SIZE, generator=generator).double()
    naive = torch.tensor(naive, dtype=torch.float64)
    torch.testing.assert_close(drawn.mean(0), naive.mean(0), atol=1.0, rtol=0)
    torch.testing.assert_close(drawn.std(0), naive.std(0), atol=1.0, rtol=0)


@pytest.mark.parametrize('size', [SIZE, (4, 400), (400, 4), (1, 1), (1, 50)])
def test_long_and_tiny_images_get_boxes_too_and_masks_are_their_boxes(size):
    boxes = draw_boxes(20, size, generator=torch.Generator().manual_seed(0))
    masks = fill_boxes(boxes, size)
    assert masks.flatten(1).any(1).all() and torch.equal(masks, naive_masks(boxes, size))
    assert not fill_boxes(torch.zeros(1, 4, dtype=torch.long), size).any()


def test_a_seed_gives_the_same_boxes():
    module = CutMix()
    images = torch.empty(8, 3, *SIZE)
    torch.manual_seed(3)
    first, second = module(images), module(images)
    torch.manual_seed(3)
    assert torch.equal(module(images), first) and not torch.equal(first, second)
    drawn = [module(images, torch.Generator().manual_seed(4)) for _ in range(2)]
    assert torch.equal(*drawn)


@pytest.mark.parametrize(('prob', 'share'), [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)])
def test_probability_of_a_box(prob, share):
    masks = CutMix(prob)(torch.empty(1000, 3, 16, 20), torch.Generator().manual_seed(0))
    assert masks.shape == (1000, 1, 16, 20) and masks.dtype == torch.bool
    assert masks.flatten(1).any(1).float().mean() == pytest.approx(share, abs=0.05)


def test_everything_is_mixed_alike():
    torch.manual_seed(0)
    masks = CutMix(1.0)(torch.empty(3, 3, 6, 7))
    images = torch.randn(3, 3, 6, 7)
    for values in (
        images,
        torch.randint(0, 5, (3, 6, 7)),  # targets
        torch.rand(3, 1, 6, 7),  # confidences
        torch.rand(3, 1, 6, 7) > 0.5,  # validity
        torch.rand(3, 2, 4, 6, 7),
    ):
        mixed = paste(values, masks)
        assert mixed.dtype == values.dtype
        assert torch.equal(mixed, naive_paste(values, masks))
    # the partner's own pixels, not pixels that have been mixed
    assert torch.equal(paste(images, torch.ones_like(masks)), images.flip(0))
    assert torch.equal(paste(images, torch.zeros_like(masks)), images)


def test_boxes_are_of_the_modules_own_area_and_aspect():
    module = CutMix(1.0, area=(0.5, 0.5), aspect=(1.0, 1.0))
    masks = module(torch.empty(9, 3, 20, 20), torch.Generator().manual_seed(0))
    assert (masks.flatten(1).sum(1) == 14 * 14).all()
