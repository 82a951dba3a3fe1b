"""F-Drop: zeroes the most active positions of z."""

import torch
from mmseg.registry import MODELS
from torch import Tensor

from mmseg_cct.utils.ranges import in_unit, pair, ranges

from .base import PerturbationContext, SpatialMask


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
        gamma = torch.rand(self.num_decoders, len(attention), 1, 1, device=attention.device)
        gamma = low + (high - low) * gamma
        return attention < gamma * attention.amax((1, 2), keepdim=True)
