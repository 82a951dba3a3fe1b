"""Lovász-softmax loss over the labelled pixels of a batch."""

from typing import Any

from mmseg.models.losses import LovaszLoss
from mmseg.registry import MODELS
from torch import Tensor


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

    def forward(self, cls_score: Tensor, label: Tensor, **kwargs: Any) -> Tensor:
        """Computes the loss, 0-dimensional, from logits `(N, C, H, W)` and labels `(N, H, W)`."""
        # sums a single value, or none
        return super().forward(cls_score, label, **kwargs).sum()
