"""Pairwise loss L_pw, supplement B.2: variance of the auxiliary predictions."""

import torch
from mmseg.registry import MODELS
from torch import Tensor, nn

from mmseg_cct.models.layers.stacked_decoders import softmax
from mmseg_cct.utils.ranges import at_least, finite, ranges

from .pixel_term import PixelTargets, PixelTerm


def variance(seg_logits: Tensor, target: Tensor) -> Tensor:
    """(1/K) Σ_k ‖q_k - q̄‖², `(1, ...)`, of logits `(K, C, ...)`; the target is ignored."""
    q = softmax(seg_logits)
    return (q - q.mean(0, keepdim=True)).square().sum(1).mean(0, keepdim=True)


@MODELS.register_module()
class PairwiseVariance(nn.Module):
    """L_pw of a random subset of the decoders, drawn in each iteration.

    Args:
        loss_weight: λ_pw.
        num_decoders: Size of the subset, at least 2; a smaller bank takes part as a whole.
    """

    @ranges(loss_weight=finite, num_decoders=at_least(2))  # one prediction has no variance
    def __init__(self, loss_weight: float = 1.0, num_decoders: int = 8) -> None:
        super().__init__()
        self.loss_weight = loss_weight
        self.num_decoders = num_decoders

    def term(self, targets: PixelTargets) -> PixelTerm:
        """Draws the subset and states L_pw of one iteration as a sum over pixels."""
        order = torch.randperm(targets.num_decoders, device=targets.seg_logits.device)
        return targets.term(
            variance,
            targets.valid_pixels,
            values_per_pixel=1,
            loss_weight=self.loss_weight,
            decoders=order[: self.num_decoders],
        )
