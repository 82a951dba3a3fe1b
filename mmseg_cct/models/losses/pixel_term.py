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
        positions: `(S,)` indices into h·w that the losses look at; None for all.
    """

    probabilities: Tensor
    labels: Tensor | None
    num_decoders: int
    positions: Tensor | None = None

    def term(self,
             distance: Distance,
             target: Tensor,
             pixel_weight: Tensor,
             rows: int,
             loss_weight: float,
             decoders: Tensor | None = None) -> 'PixelTerm':
        """A mean over the pixels that count, estimated on the chosen positions.

        The mean is divided by the number of pixels that count in the whole map, times the share of
        positions chosen: so the estimate is unbiased.

        Args:
            distance: Pure function of seg_logits and target.
            target: `(..., R, s²/R, N, h·w)`.
            pixel_weight: `(R, s²/R, N, h·w)` in [0, 1].
            rows: Values that the distance gives per pixel.
            loss_weight: ω.
            decoders: Indices of the decoders the term looks at; None for all.

        Returns:
            The term.
        """
        count = pixel_weight.sum(dtype=torch.float64).clamp(min=1)
        if self.positions is not None:
            count = count * (len(self.positions) / target.shape[-1])
            target = target[..., self.positions]
            pixel_weight = pixel_weight[..., self.positions]
        return PixelTerm(distance, target, pixel_weight, 1 / (count * rows), loss_weight, decoders)


@dataclass
class PixelTerm:
    """scale · Σ_k Σ_pixel pixel_weight · distance(seg_logits, target).

    Attributes:
        distance: Pure function of seg_logits and target.
        target: `(..., R, s²/R, N, S)`.
        pixel_weight: `(R, s²/R, N, S)` in [0, 1]; 0 leaves a pixel out.
        scale: 0-dimensional factor that makes the sum a mean.
        loss_weight: ω, the factor of the term in the total loss.
        decoders: Indices of the decoders the term looks at; None for all.
    """

    distance: Distance
    target: Tensor
    pixel_weight: Tensor
    scale: Tensor
    loss_weight: float
    decoders: Tensor | None


def softmax(seg_logits: Tensor) -> Tensor:
    """Probabilities over the classes.

    Through the logarithm: its derivative needs one pass less over the predictions, and a second
    exponential is cheaper than a division, so the compiled kernels are a fifth faster.

    Args:
        seg_logits: `(K, C, ...)`.

    Returns:
        `(K, C, ...)` in [0, 1].
    """
    return seg_logits.log_softmax(1).exp()
