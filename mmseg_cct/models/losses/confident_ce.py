"""Losses to the confident part of another prediction, as in FixMatch, UniMatch and CutMix-Seg."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from mmseg.registry import MODELS
from torch import Tensor, nn

from mmseg_cct.models.layers.cutmix import paste
from mmseg_cct.utils.ranges import in_unit, ranges


@dataclass
class PseudoTargets:
    """The targets of a network on the strong views of unlabelled images."""

    target: Tensor  # class ids (N, 1, H, W) or probabilities (N, C, H, W)
    weight: Tensor  # (N, 1, H, W) in [0, 1]; 0 leaves a pixel out
    valid: Tensor  # (N, 1, H, W), 1 at real pixels and 0 at padding

    def mix(self, boxes: Tensor | None) -> 'PseudoTargets':
        """Pastes targets in the boxes of `CutMix`, as is done with the images."""
        parts = (self.target, self.weight, self.valid)
        return PseudoTargets(*(paste(part, boxes) for part in parts))


@MODELS.register_module()
class ConfidentCrossEntropy(nn.Module):
    """CE(ŷ, q) of the pixels whose target ŷ is confident, divided by the number of all real pixels.

    So the loss ramps itself up as the predictions become confident.

    Args:
        loss_weight: λ, the weight of the loss in the total.
        threshold: τ in [0, 1]; pixels with max_c p ≥ τ count.

    Examples:
        >>> loss = ConfidentCrossEntropy(threshold=0.9)
        >>> weak = torch.tensor([[0.0, 5.0], [0.0, -5.0]]).view(1, 2, 1, 2)  # unsure, then class 0
        >>> targets = loss.targets(weak)
        >>> targets.weight.flatten().tolist()
        [0.0, 1.0]
        >>> round(loss(torch.zeros(1, 2, 1, 2), targets).item(), 3)  # log 2, over both pixels
        0.347
    """

    # Whether the target is the distribution p instead of its most probable class.
    soft = False

    @ranges(threshold=in_unit)
    def __init__(self, loss_weight: float = 1.0, threshold: float = 0.95) -> None:
        super().__init__()
        self.loss_weight = loss_weight
        self.threshold = threshold

    @torch.no_grad()
    def targets(self, seg_logits: Tensor, valid: Tensor | None = None) -> PseudoTargets:
        """Makes targets from logits `(N, C, H, W)` on the weak views.

        `valid` is `(N, 1, H, W)` bool, False at padding; None without padding.
        """
        # in float32: 16 bits round a confidence near the threshold
        probabilities = seg_logits.float().softmax(1)
        confidence, labels = probabilities.max(1, keepdim=True)
        valid = torch.ones_like(confidence) if valid is None else valid.to(confidence)
        weight = valid * (confidence >= self.threshold)
        return PseudoTargets(probabilities if self.soft else labels, weight, valid)

    def forward(self, seg_logits: Tensor, targets: PseudoTargets) -> Tensor:
        """Computes the loss of one view, 0-dimensional, without λ, from logits `(N, C, H, W)`."""
        loss = self.pixel_loss(seg_logits.float(), targets.target)
        # if no pixel is real, the loss is 0, not undefined
        return (loss * targets.weight).sum() / targets.valid.sum().clamp(min=1)

    def pixel_loss(self, seg_logits: Tensor, target: Tensor) -> Tensor:
        """CE(ŷ, q) of every pixel, `(N, 1, H, W)`, from float32 logits `(N, C, H, W)`."""
        return F.cross_entropy(seg_logits, target.squeeze(1), reduction='none').unsqueeze(1)


@MODELS.register_module()
class ConfidentMSE(ConfidentCrossEntropy):
    """Σ_c (softmax(ŷ)_c - p_c)² of the pixels whose target p is confident, over all real pixels.

    It is bounded, so wrong pseudo labels weigh less than in the cross-entropy
    (https://arxiv.org/abs/1906.01916). It is summed over the classes, so, unlike in
    `MSEConsistency`, λ need not grow with C.

    Args:
        loss_weight: λ, the weight of the loss in the total.
        threshold: As in `ConfidentCrossEntropy`; by default every pixel counts.
    """

    soft = True

    def __init__(self, loss_weight: float = 1.0, threshold: float = 0.0) -> None:
        super().__init__(loss_weight, threshold)

    def pixel_loss(self, seg_logits: Tensor, target: Tensor) -> Tensor:
        """Σ_c (softmax(ŷ)_c - p_c)² of every pixel; shapes as in `ConfidentCrossEntropy`."""
        return (seg_logits.softmax(1) - target).square().sum(1, keepdim=True)
