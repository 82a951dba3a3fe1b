"""What a loss on auxiliary predictions is: a sum over decoders and pixels of a distance.

Shapes: `K` decoders (or the subset a term looks at), `C` classes, and pixels in sub-pixel layout,
`R` sub-pixels of the last level, `Q` all that comes before (see `subpixel.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

# (seg_logits (K, C, R, Q), target (..., R, Q)) → one value per decoder and pixel, (K, R, Q)
Distance = Callable[[Tensor, Tensor], Tensor]


@dataclass
class PixelTargets:
    """What the auxiliary predictions of one iteration are compared with, in sub-pixel layout.

    Attributes:
        probabilities: `(C, R, s²/R, N, h·w)`, the main decoder's, detached.
        labels: `(1, R, s²/R, N, h·w)` pseudo labels, or None.
        num_decoders: K.
    """

    probabilities: Tensor
    labels: Tensor | None
    num_decoders: int


@dataclass
class PixelTerm:
    """scale · Σ_k Σ_pixel pixel_weight · distance(seg_logits, target).

    Attributes:
        distance: Pure function of seg_logits and target.
        target: `(..., R, s²/R, N, h·w)`.
        pixel_weight: `(R, s²/R, N, h·w)` in [0, 1]; 0 leaves a pixel out.
        scale: 0-dimensional factor that makes the sum a mean.
        loss_weight: ω, the factor of the term in the total loss.
        decoders: Indices of the decoders the term looks at; None for all.
    """

    distance: Distance
    target: Tensor
    pixel_weight: Tensor
    scale: Tensor
    loss_weight: float
    decoders: Tensor | None = None


def softmax(seg_logits: Tensor) -> Tensor:
    """Probabilities over the classes.

    Spelt out: one reciprocal per pixel in place of one division per class and pixel, which the
    compiled kernels are a third faster for.

    Args:
        seg_logits: `(K, C, ...)`.

    Returns:
        `(K, C, ...)` in [0, 1].
    """
    exponential = (seg_logits - seg_logits.detach().amax(1, keepdim=True)).exp()
    return exponential * exponential.sum(1, keepdim=True).reciprocal()


def inverse_count(pixel_weight: Tensor, rows: int) -> Tensor:
    """1 / (number of pixels that count · rows), 0-dimensional; finite where no pixel counts."""
    return 1 / (pixel_weight.sum(dtype=torch.float64).clamp(min=1) * rows)
