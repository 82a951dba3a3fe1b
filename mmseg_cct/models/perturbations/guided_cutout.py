"""G-Cutout: zeroes a random crop of every detected object."""

import torch
from mmseg.registry import MODELS
from torch import Tensor

from mmseg_cct.utils.ranges import in_unit, number, ranges

from .base import PerturbationContext, SpatialMask


def random_crops(low: Tensor, high: Tensor, ratio: float, num_draws: int) -> tuple[Tensor, Tensor]:
    """Draws k sub-intervals of a fixed relative length in [0, 1], uniformly placed.

    Bounds are pixels, int64, the upper one exclusive: `low` and `high` are `(B,)`, the returned
    starts and ends `(k, B)`.
    """
    side = high - low
    crop = (side * ratio).long()
    share = torch.rand(num_draws, len(low), device=low.device)
    start = low + (share * (side - crop + 1)).long()
    return start, start + crop


@MODELS.register_module()
class GuidedCutout(SpatialMask):
    """Zeroes a randomly placed crop of every detected object's bounding box.

    Args:
        num_decoders: k, the number of decoders with this perturbation; each draws its own crops.
        side_ratio: Side of the crop over that of the box, in [0, 1].
        min_box_side: Least width and height of a box, in feature positions; smaller ones are specks
            of an uncertain prediction.
    """

    @ranges(side_ratio=in_unit, min_box_side=number(0))
    def __init__(
        self, num_decoders: int = 6, side_ratio: float = 0.4, min_box_side: float = 1.0
    ) -> None:
        super().__init__(num_decoders)
        self.side_ratio = side_ratio
        self.min_box_side = min_box_side

    def mask(self, context: PerturbationContext) -> Tensor:
        n, _, h, w = context.features.shape
        stride = context.seg_logits.shape[-1] // w
        image, left, top, right, bottom = context.boxes(self.min_box_side).unbind(1)
        inside_x = self._covered(left, right, w, stride)  # (k, B, w)
        inside_y = self._covered(top, bottom, h, stride)
        crops = inside_y.unsqueeze(3) & inside_x.unsqueeze(2)  # (k, B, h, w)
        # a position is cut by any crop of its image; counted, as boxes of an image may overlap
        cut = crops.new_zeros((self.num_decoders, n, h, w), dtype=torch.int32)
        cut.index_add_(1, image, crops.to(torch.int32))
        return cut == 0

    def _covered(self, low: Tensor, high: Tensor, size: int, stride: int) -> Tensor:
        """`(k, B, size)` bool: positions whose first pixel lies in a random crop of each box."""
        start, end = random_crops(low, high, self.side_ratio, self.num_decoders)
        pixel = torch.arange(size, device=low.device) * stride
        return (pixel >= start.unsqueeze(2)) & (pixel < end.unsqueeze(2))
