"""Losses over the labelled pixels: cross-entropy, Lovász-softmax, and ab-CE, Eq. 4 of the paper."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from mmseg.models.losses import CrossEntropyLoss, LovaszLoss
from mmseg.registry import MODELS
from torch import Tensor, nn

from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.transfer import to_device


@MODELS.register_module()
class MeanCrossEntropy(CrossEntropyLoss):
    """MMSeg's `CrossEntropyLoss` as a mean over the labelled pixels, which are counted on the GPU.

    With `avg_non_ignore=True` MMSeg's own makes the host wait for their number in every step, and
    fails with `class_weight`. With class weights the mean is weighted, as in torch.

    Args:
        avg_non_ignore: As in MMSeg, where it is False by default.
        **kwargs: Arguments of `CrossEntropyLoss`, such as `class_weight` and `loss_weight`.
    """

    def __init__(self, avg_non_ignore: bool = True, **kwargs: Any) -> None:
        super().__init__(avg_non_ignore=avg_non_ignore, **kwargs)

    def forward(
        self,
        cls_score: Tensor,
        label: Tensor,
        weight: Tensor | None = None,
        avg_factor: Any = None,
        reduction_override: str | None = None,
        ignore_index: int = -100,
        **kwargs: Any,
    ) -> Tensor:
        """Computes the loss, 0-dimensional unless `reduction_override` says otherwise.

        Logits are `(N, C, H, W)`, `label` and the weight of each pixel `(N, H, W)`. The sum is
        divided by `avg_factor`, by default the number of labelled pixels; with none the loss is 0.
        """
        # a tensor as divisor: MMSeg would turn the count into a number, for which the host waits
        is_mean = (reduction_override or self.reduction) == 'mean' and self.avg_non_ignore
        if avg_factor is None and is_mean and not (self.use_sigmoid or self.use_mask):
            labeled = label != ignore_index
            if self.class_weight is None:
                avg_factor = labeled.sum()
            else:
                class_weight = torch.tensor(self.class_weight, dtype=cls_score.dtype)
                class_weight = to_device(class_weight, cls_score.device)
                avg_factor = (class_weight[label.where(labeled, 0)] * labeled).sum()
        return super().forward(
            cls_score, label, weight, avg_factor, reduction_override, ignore_index, **kwargs
        )


@MODELS.register_module()
class BatchLovasz(LovaszLoss):
    """MMSeg's `LovaszLoss` on a whole batch, a surrogate of 1 - IoU averaged over its classes.

    A class with few pixels counts as much as any other, whereas cross-entropy counts pixels
    (https://arxiv.org/abs/1705.08790). Use it together with a cross-entropy::

        loss_decode=[dict(type='MeanCrossEntropy'), dict(type='BatchLovasz')]

    A batch without labelled pixels gives 0, whereas MMSeg's gives NaN.

    Args:
        loss_weight: Factor of the loss.
        **kwargs: Further arguments of `LovaszLoss`, such as `class_weight`.
    """

    def __init__(self, loss_weight: float = 1.0, **kwargs: Any) -> None:
        super().__init__(per_image=False, reduction='none', loss_weight=loss_weight, **kwargs)

    def forward(
        self, cls_score: Tensor, label: Tensor, ignore_index: int = 255, **kwargs: Any
    ) -> Tensor:
        """Computes the loss, 0-dimensional, from logits `(N, C, H, W)` and labels `(N, H, W)`."""
        if (label != ignore_index).sum() == 1:  # MMSeg squeezes it away; twice, it weighs the same
            cls_score, label = torch.cat([cls_score] * 2), torch.cat([label] * 2)
        # sums a single value, or none
        return super().forward(cls_score, label, ignore_index=ignore_index, **kwargs).sum()


@MODELS.register_module()
class BootstrappedCrossEntropy(nn.Module):
    """ab-CE, Eq. 4: the mean cross-entropy over the pixels whose true class has p < η.

    η may rise from 1/C to `threshold` during the training::

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
        progress: How far η is on its way from 1/C to `threshold`, in [0, 1]; a `RampUpHook` raises
            it.

    Raises:
        UserError: If the head has a sampler, which picks hard pixels too.
    """

    loss_name = 'loss_abce'  # key in the loss dict

    def __init__(
        self,
        threshold: float = 0.9,
        loss_weight: float = 1.0,
        class_weight: list[float] | None = None,
        progress: float = 1.0,
    ) -> None:
        super().__init__()
        self.threshold = threshold
        self.loss_weight = loss_weight
        self.class_weight = class_weight
        self.progress = progress

    def forward(
        self,
        cls_score: Tensor,
        label: Tensor,
        weight: Tensor | None = None,
        ignore_index: int = 255,
    ) -> Tensor:
        """Computes the weighted loss, 0-dimensional, 0 if no pixel counts.

        Logits are `(N, C, H, W)`, the label `(N, H, W)`.
        """
        if weight is not None:
            problem = 'picks hard pixels, as BootstrappedCrossEntropy does'
            raise UserError('model.decode_head.sampler', problem, 'None')
        loss, is_hard = self._hard_pixels(cls_score, label, ignore_index)
        # hard or not is a matter of probability: class weights come afterwards
        if self.class_weight is not None:
            class_weight = torch.tensor(self.class_weight, dtype=cls_score.dtype)
            loss = loss * to_device(class_weight, loss.device)[label.masked_fill(~is_hard, 0)]
        return self.loss_weight * ((loss * is_hard).sum() / is_hard.sum().clamp(min=1))

    @torch.no_grad()
    def share_of_hard_pixels(self, cls_score: Tensor, label: Tensor, ignore_index: int) -> Tensor:
        """Share of the labelled pixels that the loss counts, in [0, 1]: a figure for the log."""
        _, is_hard = self._hard_pixels(cls_score, label, ignore_index)
        return is_hard.sum() / (label != ignore_index).sum().clamp(min=1)

    def _hard_pixels(
        self, cls_score: Tensor, label: Tensor, ignore_index: int
    ) -> tuple[Tensor, Tensor]:
        """Cross-entropy of each pixel, and whether its true class has p < η: -log p > -log η."""
        loss = F.cross_entropy(cls_score, label, ignore_index=ignore_index, reduction='none')
        chance = 1 / cls_score.shape[1]
        threshold = chance + (self.threshold - chance) * self.progress
        threshold_loss = -math.log(threshold) if threshold > 0 else math.inf
        return loss, (label != ignore_index) & (loss.detach() > threshold_loss)
