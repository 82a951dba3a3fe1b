"""Losses on auxiliary predictions as sums of a distance over decoders and pixels.

Shapes: `N` images of `H×W` pixels, `K` decoders (or the subset of a term), `C` classes. A distance
sees pixels in sub-pixel layout: `R` sub-pixels of the last level, `Q` all other axes (see
`subpixel.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

# (seg_logits (K, C, R, Q), probabilities (C, R, Q) or labels (1, R, Q)) → one value per decoder and
# pixel, (K, R, Q)
Distance = Callable[[Tensor, Tensor], Tensor]


@dataclass
class PixelTargets:
    """Main prediction and labels that the auxiliary predictions of an iteration are compared with.

    `positions` are the feature positions that count. No term counts the padding.
    """

    seg_logits: Tensor  # (N, C, H, W) of the main decoder, detached
    labels: Tensor | None  # (N, 1, H, W) pseudo labels, or None
    num_decoders: int  # K
    stride: int  # s; a feature position has s×s pixels
    positions: Tensor | None = None  # (S,) indices into h·w; None for all
    valid: Tensor | None = None  # (N, 1, H, W) bool, False at padding; None for all pixels

    @cached_property
    def valid_pixels(self) -> Tensor:
        """Pixel weight of 1 at real pixels and 0 at padding, `(N, 1, H, W)`."""
        dtype = torch.promote_types(self.seg_logits.dtype, torch.float32)
        if self.valid is not None:
            return self.valid.to(dtype)
        return torch.ones_like(self.seg_logits[:, :1], dtype=dtype)

    def term(
        self,
        distance: Distance,
        pixel_weight: Tensor,
        values_per_pixel: float,
        loss_weight: float,
        labels: Tensor | None = None,
        decoders: Tensor | None = None,
    ) -> 'PixelTerm':
        """States a mean over the pixels that count, estimated at the chosen positions.

        Arguments are the attributes of `PixelTerm`, and `values_per_pixel`: K, or 1 if the distance
        reduces the decoders.
        """
        # in float64: float32 cannot count beyond 2²⁴ pixels
        total = pixel_weight.sum(dtype=torch.float64)
        count = total.clamp(min=1)
        if self.positions is not None:
            # The pixels of the whole map times the share of positions make the estimate unbiased;
            # a mean over the counted pixels of the subset is too low where none of them counts.
            num_positions = pixel_weight[0].numel() // self.stride**2
            count = count * (len(self.positions) / num_positions)
        scale = (count * values_per_pixel).reciprocal()
        return PixelTerm(distance, labels, pixel_weight, total, scale, loss_weight, decoders)


@dataclass
class PixelTerm:
    """Loss of the form scale · Σ_k Σ_pixel pixel_weight · distance(seg_logits, target)."""

    distance: Distance
    labels: Tensor | None  # (N, 1, H, W), the target; None for the main decoder's probabilities
    pixel_weight: Tensor  # (N, 1, H, W) in [0, 1]; 0 leaves a pixel out
    total_weight: Tensor  # 0-dimensional, its sum
    scale: Tensor  # 0-dimensional, makes the sum a mean
    loss_weight: float  # ω, the factor of the term in the total loss
    decoders: Tensor | None  # (k,) indices of those that the term looks at; None for all

    @cached_property
    def factor(self) -> Tensor:
        """ω · scale, 0-dimensional."""
        return self.loss_weight * self.scale
