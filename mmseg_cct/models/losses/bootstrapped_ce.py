"""Annealed bootstrapped cross-entropy (ab-CE), Eq. 4 of the paper."""

import math

import torch
import torch.nn.functional as F
from mmseg.registry import MODELS
from torch import Tensor, nn

from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.transfer import to_device


def hard_pixels(
    cross_entropy: Tensor, label: Tensor, threshold: float, ignore_index: int = 255
) -> Tensor:
    """Finds labelled pixels whose true class has a probability below η: -log p > -log η.

    `(N, H, W)` bool, from the unweighted cross-entropy and the label of that shape.
    """
    easiest = -math.log(threshold) if threshold > 0 else math.inf
    return (label != ignore_index) & (cross_entropy > easiest)


def bootstrapped_cross_entropy(
    seg_logits: Tensor,
    label: Tensor,
    threshold: float,
    ignore_index: int = 255,
    class_weight: Tensor | None = None,
) -> Tensor:
    """Mean cross-entropy over the hard pixels, Eq. 4; 0-dimensional, 0 if no pixel counts.

    A pixel counts if its true class has a probability below η, the `threshold`. Logits are
    `(N, C, H, W)`, the label `(N, H, W)` and the class weight `(C,)`, None for equal weights.
    """
    # hard or not is a matter of probability: class weights come afterwards
    loss = F.cross_entropy(seg_logits, label, ignore_index=ignore_index, reduction='none')
    hard = hard_pixels(loss.detach(), label, threshold, ignore_index)
    if class_weight is not None:
        loss = loss * class_weight[label.masked_fill(~hard, 0)]
    return (loss * hard).sum() / hard.sum().clamp(min=1)


@MODELS.register_module()
class BootstrappedCrossEntropy(nn.Module):
    """ab-CE as a `loss_decode`, whose η may rise from 1/C to `threshold` during the training::

        loss_decode=[dict(type='BootstrappedCrossEntropy')]
        dict(
            type='RampUpHook',
            attribute='decode_head.loss_decode.0.progress',
            schedule='log',
            fraction=0.4,
        )

    Args:
        threshold: η at the end, in [0, 1]; a value above 1 gives plain cross-entropy.
        loss_weight: Factor of the loss.
        class_weight: One weight per class; None for equal weights.
        loss_name: Key in the loss dict; it has to contain "loss".
        progress: How far η is on its way from 1/C to `threshold`, in [0, 1]; a `RampUpHook` raises
            it.

    Raises:
        UserError: If the head has a sampler, which picks hard pixels too.
    """

    def __init__(
        self,
        threshold: float = 0.9,
        loss_weight: float = 1.0,
        class_weight: list[float] | None = None,
        loss_name: str = 'loss_abce',
        progress: float = 1.0,
    ) -> None:
        super().__init__()
        self.threshold = threshold
        self.loss_weight = loss_weight
        self.class_weight = class_weight
        self.loss_name = loss_name
        self.progress = progress

    def current_threshold(self, num_classes: int) -> float:
        """η of this iteration: 1/C with `progress` 0, `threshold` with 1."""
        chance = 1 / num_classes
        return chance + (self.threshold - chance) * self.progress

    def forward(
        self,
        cls_score: Tensor,
        label: Tensor,
        weight: Tensor | None = None,
        ignore_index: int = 255,
    ) -> Tensor:
        """Computes the weighted loss; see `bootstrapped_cross_entropy`."""
        if weight is not None:
            raise UserError(
                'model.decode_head.sampler',
                'picks hard pixels, as BootstrappedCrossEntropy does',
                'None',
            )
        class_weight = None
        if self.class_weight is not None:
            class_weight = torch.tensor(self.class_weight, dtype=cls_score.dtype)
            class_weight = to_device(class_weight, cls_score.device)
        threshold = self.current_threshold(cls_score.shape[1])
        return self.loss_weight * bootstrapped_cross_entropy(
            cls_score, label, threshold, ignore_index, class_weight
        )

    def share_of_hard_pixels(
        self, cls_score: Tensor, label: Tensor, ignore_index: int = 255
    ) -> Tensor:
        """Share of the labelled pixels that the loss counts, in [0, 1]: a figure for the log."""
        with torch.no_grad():
            loss = F.cross_entropy(cls_score, label, ignore_index=ignore_index, reduction='none')
        threshold = self.current_threshold(cls_score.shape[1])
        hard = hard_pixels(loss, label, threshold, ignore_index)
        return hard.sum() / (label != ignore_index).sum().clamp(min=1)
