"""Cross-entropy over the labelled pixels."""

from typing import Any

import torch
from mmseg.models.losses import CrossEntropyLoss
from mmseg.registry import MODELS
from torch import Tensor

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
        averaged = (reduction_override or self.reduction) == 'mean' and self.avg_non_ignore
        if avg_factor is None and averaged and not (self.use_sigmoid or self.use_mask):
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
