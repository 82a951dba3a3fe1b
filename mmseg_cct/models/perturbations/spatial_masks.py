"""Perturbations that zero positions of z: F-Drop, G-Cutout, Con-Msk and Obj-Msk."""

from abc import abstractmethod

import torch
from mmseg.registry import MODELS
from torch import Tensor

from mmseg_cct.models.layers.stacked_decoders import DecoderGroup
from mmseg_cct.models.layers.transfer import to_device
from mmseg_cct.utils.ranges import in_unit, pair, ranges

from .base import Perturbation, PerturbationContext


class SpatialMask(Perturbation):
    """Perturbation that zeroes positions of z.

    A mask m commutes with the projection, W(z ⊙ m) = (Wz) ⊙ m: z is projected once, then masked.
    """

    projects_z = True

    @abstractmethod
    def mask(self, context: PerturbationContext) -> Tensor:
        """Draws masks `(k or 1, N, h, w)` bool of `context.features`, True where z is kept."""

    def _chosen_mask(self, context: PerturbationContext) -> Tensor:
        """`(k or 1, N, 1, S)` bool: the mask at the positions that the losses look at."""
        return context.at_positions(self.mask(context)).unsqueeze(2)

    def perturb(self, decoders: DecoderGroup, context: PerturbationContext) -> Tensor:
        mask = self._chosen_mask(context).expand(self.num_decoders, -1, -1, -1)
        return context.chosen_features * mask

    def project(self, decoders: DecoderGroup, context: PerturbationContext) -> Tensor:
        return decoders.project(context.chosen_features) * self._chosen_mask(context)


@MODELS.register_module()
class FeatureDrop(SpatialMask):
    """Zeroes the positions whose channel mean of |z| is at least γ times the image's largest.

    For z ≥ 0 that is the paper's mean of z. Other features, such as those of a neck without a final
    ReLU, may have a negative mean everywhere, and γ times the largest would drop nothing.

    Args:
        num_decoders: k, the number of decoders with this perturbation.
        threshold_range: Range of γ in [0, 1], drawn uniformly for each decoder and image.
    """

    @ranges(threshold_range=pair(in_unit))
    def __init__(
        self, num_decoders: int = 6, threshold_range: tuple[float, float] = (0.6, 0.9)
    ) -> None:
        super().__init__(num_decoders)
        self.threshold_range = tuple(threshold_range)

    def mask(self, context: PerturbationContext) -> Tensor:
        # |z| in float32, as 16 bits would round it over the threshold
        attention = context.features.detach().float().abs().mean(1)  # (N, h, w)
        low, high = self.threshold_range
        gamma = low + (high - low) * torch.rand(self.num_decoders, len(attention), 1, 1)
        gamma = to_device(gamma, attention.device)
        return attention < gamma * attention.amax((1, 2), keepdim=True)


@MODELS.register_module()
class GuidedCutout(SpatialMask):
    """Zeroes a randomly placed crop of every detected object's bounding box.

    Args:
        num_decoders: k, the number of decoders with this perturbation; each draws its own crops.
        side_ratio: Side of the crop over that of the box, in [0, 1].
        min_box_side: Least width and height of a box, in feature positions; smaller ones are specks
            of an uncertain prediction.
    """

    @ranges(side_ratio=in_unit)
    def __init__(
        self, num_decoders: int = 6, side_ratio: float = 0.4, min_box_side: float = 1.0
    ) -> None:
        super().__init__(num_decoders)
        self.side_ratio = side_ratio
        self.min_box_side = min_box_side

    def mask(self, context: PerturbationContext) -> Tensor:
        n, _, h, w = context.features.shape
        stride = context.seg_logits.shape[-1] // w
        boxes = context.objects.boxes(self.min_box_side * stride)
        # both axes at once, (2, 1, B): x, then y; on the host, where the boxes are
        low, high = boxes[:, 1:3].T.unsqueeze(1), boxes[:, 3:5].T.unsqueeze(1)
        starts, ends = random_crops(low, high, self.side_ratio, self.num_decoders)
        # first pixels of the positions: as nearest resizing of the whole mask, which is never made
        pixel = torch.arange(0, max(h, w) * stride, stride)
        inside = (pixel >= starts.unsqueeze(3)) & (pixel < ends.unsqueeze(3))  # (2, k, B, h or w)
        columns, rows = inside[0, ..., :w], inside[1, ..., :h]
        of_image = boxes[:, 0] == torch.arange(n).unsqueeze(1)  # (N, B)
        rows = (rows.unsqueeze(1) & of_image.unsqueeze(2)).transpose(2, 3)  # (k, N, h, B)
        # one copy to the device; there one product counts the crops that cut a position
        sides = torch.cat([rows.flatten(1, 2), columns.mT], 1).float()
        rows, columns = to_device(sides, context.features.device).split([n * h, w], 1)
        return (torch.bmm(rows, columns.mT) == 0).unflatten(1, (n, h))


@MODELS.register_module()
class ContextMasking(SpatialMask):
    """Con-Msk: zeroes the context and keeps the detected objects, alike in all decoders."""

    def mask(self, context: PerturbationContext) -> Tensor:
        return context.foreground_at_features.unsqueeze(0)


@MODELS.register_module()
class ObjectMasking(SpatialMask):
    """Obj-Msk: zeroes the detected objects and keeps the context, alike in all decoders."""

    def mask(self, context: PerturbationContext) -> Tensor:
        return ~context.foreground_at_features.unsqueeze(0)


def random_crops(low: Tensor, high: Tensor, ratio: float, num_draws: int) -> tuple[Tensor, Tensor]:
    """Draws k sub-intervals of a fixed relative length in [0, 1], uniformly placed.

    Bounds are pixels, int64, the upper one exclusive: `low` and `high` are `(B,)` or `(2, 1, B)`,
    the returned starts and ends `(k, B)` or `(2, k, B)`.
    """
    side = high - low
    crop = (side * ratio).long()
    share = torch.rand(*low.shape[:-2], num_draws, low.shape[-1], device=low.device)
    start = low + (share * (side - crop + 1)).long()
    return start, start + crop
