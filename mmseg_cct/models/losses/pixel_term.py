"""Losses on auxiliary predictions as sums of a distance over decoders and pixels.

Shapes: `N` images of `H×W` pixels, `K` decoders (or the subset of a term), `C` classes. A distance
sees pixels in sub-pixel layout: `R` sub-pixels of the last level, `Q` all other axes (see
`subpixel.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

# (seg_logits (K, C, R, Q), probabilities (C, R, Q) or labels (1, R, Q)) → one value per decoder and
# pixel, (K, R, Q)
Distance = Callable[[Tensor, Tensor], Tensor]

# What the sum over pixels is divided by: all real pixels, or the weight of those that count.
NORMALIZERS = ('valid', 'counted')


@dataclass
class PixelTargets:
    """Main prediction and labels that the auxiliary predictions of an iteration are compared with.

    Attributes:
        seg_logits: `(N, C, H, W)` of the main decoder, detached.
        labels: `(N, 1, H, W)` pseudo labels, or None.
        num_decoders: K.
        stride: s; a feature position has s×s pixels.
        positions: `(S,)` indices into h·w of the positions that count; None for all.
        valid: `(N, 1, H, W)` bool, False at padding, which no term counts; None for all pixels.
    """

    seg_logits: Tensor
    labels: Tensor | None
    num_decoders: int
    stride: int
    positions: Tensor | None = None
    valid: Tensor | None = None

    @property
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
        counted: Tensor | None = None,
    ) -> 'PixelTerm':
        """States a mean over the pixels that count, estimated at the chosen positions.

        The sum is divided by the number of counting pixels of the whole map times the share of
        chosen positions, which makes the estimate unbiased.

        Arguments are the attributes of `PixelTerm` and two for the divisor: `values_per_pixel` is
        K, or 1 if the distance reduces the decoders; `counted` `(N, 1, H, W)` are the pixels to
        count, by default those of `pixel_weight`.
        """
        counted = pixel_weight if counted is None else counted
        count = counted.sum(dtype=torch.float64).clamp(min=1)
        if self.positions is not None:
            num_positions = pixel_weight[0].numel() // self.stride**2
            count = count * (len(self.positions) / num_positions)
        scale = 1 / (count * values_per_pixel)
        return PixelTerm(distance, labels, pixel_weight, scale, loss_weight, decoders)


@dataclass
class PixelTerm:
    """Loss of the form scale · Σ_k Σ_pixel pixel_weight · distance(seg_logits, target).

    Attributes:
        distance: Pure function of seg_logits and target.
        labels: `(N, 1, H, W)`, the target; None for the main decoder's probabilities.
        pixel_weight: `(N, 1, H, W)` in [0, 1]; 0 leaves a pixel out.
        scale: 0-dimensional factor that makes the sum a mean.
        loss_weight: ω, the factor of the term in the total loss.
        decoders: `(k,)` indices of the decoders the term looks at; None for all.
    """

    distance: Distance
    labels: Tensor | None
    pixel_weight: Tensor
    scale: Tensor
    loss_weight: float
    decoders: Tensor | None
