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


def test_boxes_match_drawing_until_one_fits():
    """The mean and the spread of each side, against the rule's own loop."""
    generator = torch.Generator().manual_seed(1)

    def uniform(low, high):
        return low + (high - low) * torch.rand((), generator=generator).item()

    naive = []
    for _ in range(1500):
        pixels = uniform(0.02, 0.4) * SIZE[0] * SIZE[1]
        while True:
            aspect = uniform(0.3, 3.33)
            height, width = int((pixels * aspect) ** 0.5), int((pixels / aspect) ** 0.5)
            left, top = int(uniform(0, SIZE[1])), int(uniform(0, SIZE[0]))
            if left + width <= SIZE[1] and top + height <= SIZE[0]:
                naive.append([left, top, left + width, top + height])
                break
    torch.manual_seed(1)
    drawn = draw_boxes(3000, SIZE).double()
    naive = torch.tensor(naive, dtype=torch.float64)
    torch.testing.assert_close(drawn.mean(0), naive.mean(0), atol=1.5, rtol=0)
    torch.testing.assert_close(drawn.std(0), naive.std(0), atol=1.5, rtol=0)


@pytest.mark.parametrize('size', [SIZE, (4, 400), (400, 4), (1, 50)])
def test_long_and_tiny_images_get_boxes_too_and_masks_are_their_boxes(size):
    torch.manual_seed(0)
    boxes = draw_boxes(20, size)
    masks = fill_boxes(boxes, size)
    assert masks.flatten(1).any(1).all() and torch.equal(masks, naive_masks(boxes, size))
    assert not fill_boxes(torch.zeros(1, 4, dtype=torch.long), size).any()


@pytest.mark.parametrize('prob', [0.0, 0.5, 1.0])
def test_probability_of_a_box(prob):
    torch.manual_seed(0)
    masks = CutMix(prob)(torch.empty(1000, 3, 16, 20))
    assert masks.shape == (1000, 1, 16, 20) and masks.dtype == torch.bool
    assert masks.flatten(1).any(1).float().mean() == pytest.approx(prob, abs=0.05)


def test_everything_is_mixed_alike():
    torch.manual_seed(0)
    masks = CutMix(1.0)(torch.empty(3, 3, 6, 7))
    images = torch.randn(3, 3, 6, 7)
    for values in (images, torch.randint(0, 5, (3, 6, 7)), torch.rand(3, 1, 6, 7) > 0.5):
        mixed = paste(values, masks)
        assert mixed.dtype == values.dtype
        assert torch.equal(mixed, naive_paste(values, masks))
    # the partner's own pixels, not pixels that have been mixed
    assert torch.equal(paste(images, torch.ones_like(masks)), images.flip(0))
    assert torch.equal(paste(images, torch.zeros_like(masks)), images)
