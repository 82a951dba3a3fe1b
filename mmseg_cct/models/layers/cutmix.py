"""CutMix (Yun et al., ICCV 2019) between the images of a batch."""

from collections.abc import Sequence

import torch
from mmseg.registry import MODELS
from torch import Tensor, nn

from mmseg_cct.utils.ranges import in_unit, pair, ranges

from .transfer import to_device


def draw_boxes(
    num_images: int,
    size: tuple[int, int],
    area: Sequence[float] = (0.02, 0.4),
    aspect: Sequence[float] = (0.3, 3.33),
) -> Tensor:
    """Draws a box inside each image, `(N, 4)` int64: left, top, right, bottom.

    Boxes are in pixels, right and bottom exclusive. `area` is the range of a box's share of the
    image, in (0, 1], and `aspect` that of height over width in pixels.

    The area is drawn once from its range; aspect and corner are redrawn until the box fits. Only
    aspects at which a box of that area can fit are drawn; if there are none, as may happen in a
    very long image, the nearest aspect that fits is used.
    """
    height, width = size

    def uniform(low: Tensor | float, high: Tensor | float) -> Tensor:
        return low + (high - low) * torch.rand(num_images, dtype=torch.float64)

    pixels = uniform(*area) * (height * width)
    # a box of this area is as wide as the image at the least aspect, as high at the largest
    least, most = pixels / width**2, height**2 / pixels
    lowest = torch.full_like(pixels, aspect[0]).clamp(least, most)
    highest = torch.full_like(pixels, aspect[1]).clamp(least, most)

    # every image draws until its box fits; those that have one keep it
    boxes = torch.zeros(num_images, 4, dtype=torch.int64)
    fits = torch.zeros(num_images, dtype=torch.bool)
    while not fits.all():
        ratio = uniform(lowest, highest)
        box_height = (pixels * ratio).sqrt().long().clamp(1, height)
        box_width = (pixels / ratio).sqrt().long().clamp(1, width)
        left, top = uniform(0, width).long(), uniform(0, height).long()
        drawn = torch.stack([left, top, left + box_width, top + box_height], dim=1)
        boxes = torch.where(fits.unsqueeze(1), boxes, drawn)
        fits = (boxes[:, 2] <= width) & (boxes[:, 3] <= height)
    return boxes


def fill_boxes(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    """Masks `(N, 1, H, W)` bool, True in the boxes of `draw_boxes`."""
    left, top, right, bottom = boxes.view(-1, 4, 1, 1).unbind(1)
    rows = torch.arange(size[0], device=boxes.device).view(1, -1, 1)
    columns = torch.arange(size[1], device=boxes.device).view(1, 1, -1)
    inside = (left <= columns) & (columns < right) & (top <= rows) & (rows < bottom)
    return inside.unsqueeze(1)


def paste(values: Tensor, boxes: Tensor | None) -> Tensor:
    """Replaces the pixels of image i inside its box by those of image N - 1 - i.

    `values` are `(N, ..., H, W)`: images, targets, confidences or validity; `boxes` `(N, 1, H, W)`
    bool, or None for none.
    """
    if boxes is None:
        return values
    mask = boxes.view(len(boxes), *[1] * (values.dim() - 3), *boxes.shape[-2:])
    return torch.where(mask, values.flip(0), values)


@MODELS.register_module()
class CutMix(nn.Module):
    """Draws the boxes in which images of a batch are mixed (https://arxiv.org/abs/1905.04899).

    Image, target, confidence and validity of a view are mixed alike: draw once, then `paste` each
    with the same boxes. The partner of image i is the unmixed image N - 1 - i, so a batch of one is
    never mixed.

    Args:
        prob: Probability that an image gets a box.
        area: Range of the share of the image that the box covers, in (0, 1].
        aspect: Range of the box's height over its width.
    """

    @ranges(prob=in_unit, area=pair(in_unit))
    def __init__(
        self,
        prob: float = 0.5,
        area: Sequence[float] = (0.02, 0.4),
        aspect: Sequence[float] = (0.3, 3.33),
    ) -> None:
        super().__init__()
        self.prob = prob
        self.area = tuple(area)
        self.aspect = tuple(aspect)

    def forward(self, images: Tensor) -> Tensor:
        """Draws the boxes of one view of images `(N, 3, H, W)`, whose values do not matter.

        Returns `(N, 1, H, W)` bool on their device, True where an image gets its partner's pixels.
        """
        size = (images.shape[-2], images.shape[-1])
        # drawn on the host, whose generator `IterationSeedHook` seeds
        mixed = torch.rand(len(images)) < self.prob
        boxes = draw_boxes(len(images), size, self.area, self.aspect)
        boxes = boxes * mixed.unsqueeze(1)  # an empty box leaves the image as it is
        return fill_boxes(to_device(boxes, images.device), size)
