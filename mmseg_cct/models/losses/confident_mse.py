"""Squared error to another prediction, as in CutMix-Seg."""

from mmseg.registry import MODELS
from torch import Tensor

from .confident_ce import ConfidentCrossEntropy


@MODELS.register_module()
class ConfidentMSE(ConfidentCrossEntropy):
    """Mean of Σ_c (softmax(ŷ)_c - p_c)² over the pixels whose target p is confident.

    It is bounded, so wrong pseudo labels weigh less than in the cross-entropy
    (https://arxiv.org/abs/1906.01916). It is summed over the classes, so, unlike in
    `MSEConsistency`, λ need not grow with C.

    Args:
        loss_weight: λ, the weight of the loss in the total.
        threshold: As in `ConfidentCrossEntropy`; by default every pixel counts.
        normalizer: As in `ConfidentCrossEntropy`.
    """

    def __init__(
        self, loss_weight: float = 1.0, threshold: float = 0.0, normalizer: str = 'valid'
    ) -> None:
        super().__init__(loss_weight, threshold, soft=True, normalizer=normalizer)

    def pixel_loss(self, seg_logits: Tensor, target: Tensor) -> Tensor:
        """Σ_c (softmax(ŷ)_c - p_c)² of every pixel; shapes as in `ConfidentCrossEntropy`."""
        return (seg_logits.softmax(1) - target).square().sum(1, keepdim=True)
