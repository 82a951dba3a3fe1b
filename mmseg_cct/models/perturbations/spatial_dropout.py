"""DropOut: spatial dropout, which zeroes whole channels of z."""

import torch
from mmseg.registry import MODELS
from torch import Tensor

from mmseg_cct.models.layers.stacked_decoders import DecoderGroup
from mmseg_cct.utils.ranges import in_unit, ranges

from .base import Perturbation, PerturbationContext


@MODELS.register_module()
class SpatialDropout(Perturbation):
    """Zeroes each channel of an image with probability p and scales the rest by 1/(1 - p).

    Args:
        num_decoders: k, the number of decoders with this perturbation.
        drop_ratio: p in [0, 1).

    Examples:
        >>> z, seg_logits = torch.rand(2, 16, 6, 9), torch.randn(2, 5, 48, 72)
        >>> context = PerturbationContext(z, seg_logits, context_classes=[0])
        >>> dropout = SpatialDropout(num_decoders=3)
        >>> tuple(dropout.perturb(None, context).shape)  # k versions of z, its positions in a row
        (3, 2, 16, 54)
    """

    @ranges(drop_ratio=in_unit)
    def __init__(self, num_decoders: int = 6, drop_ratio: float = 0.5) -> None:
        super().__init__(num_decoders)
        self.drop_ratio = drop_ratio

    def channel_factors(self, features: Tensor) -> Tensor:
        """Draws factors 0 or 1/(1 - p) of the channels `(k, N, D)`, for features `(N, D, S)`."""
        # for each image, as `nn.Dropout2d` draws, and for each decoder
        keep = torch.rand(self.num_decoders, *features.shape[:2], device=features.device)
        return ((keep >= self.drop_ratio) / (1 - self.drop_ratio)).to(features.dtype)

    def perturb(self, decoders: DecoderGroup, context: PerturbationContext) -> Tensor:
        features = context.chosen_features
        return features * self.channel_factors(features).unsqueeze(-1)

    def project(self, decoders: DecoderGroup, context: PerturbationContext) -> Tensor:
        """See `Perturbation.project`: W(z ⊙ m) = (W ⊙ m)z, so the factors fold into W."""
        features = context.chosen_features
        factors = self.channel_factors(features).transpose(0, 1).unsqueeze(2)
        weight = decoders.projection * factors  # (N, k, B, D)
        projected = torch.bmm(weight.flatten(1, 2), features)
        return projected.unflatten(1, weight.shape[1:3]).transpose(0, 1)
