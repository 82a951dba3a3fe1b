"""Annealed bootstrapped cross-entropy (ab-CE), equation 4 of the paper."""

import torch
import torch.nn.functional as F
from mmseg.registry import MODELS
from torch import Tensor, nn


@torch.no_grad()
def pixels_below(
    seg_logits: Tensor, label: Tensor, threshold: float, ignore_index: int = 255
) -> Tensor:
    """The pixels that the network does not know well yet.

    Args:
        seg_logits: `(N, C, H, W)`.
        label: `(N, H, W)`, class ids or `ignore_index`.
        threshold: η.
        ignore_index: Label of the pixels without truth.

    Returns:
        `(N, H, W)` bool: where the true class has a probability below η.
    """
    valid = label != ignore_index
    true_class = label.masked_fill(~valid, 0).unsqueeze(1)
    probability = seg_logits.softmax(dim=1).gather(1, true_class).squeeze(1)
    return valid & (probability < threshold)


def bootstrapped_cross_entropy(
    seg_logits: Tensor,
    label: Tensor,
    threshold: float,
    ignore_index: int = 255,
    class_weight: Tensor | None = None,
) -> Tensor:
    """Cross-entropy over the pixels that the network does not know well yet.

    Args:
        seg_logits: `(N, C, H, W)`.
        label: `(N, H, W)`, class ids or `ignore_index`.
        threshold: η; pixels whose true-class probability is below it count.
        ignore_index: Label of the pixels without truth.
        class_weight: `(C,)`, or None for equal weights.

    Returns:
        The mean over the pixels that count; 0 if none does.
    """
    counts = pixels_below(seg_logits, label, threshold, ignore_index)
    return _mean_cross_entropy(seg_logits, label, counts, ignore_index, class_weight)


@MODELS.register_module()
class BootstrappedCrossEntropy(nn.Module):
    """ab-CE as a `loss_decode`; a `RampUpHook` on `threshold` anneals it.

    After a call `pixels` holds the share of the labelled pixels that counted, which
    `PixelShuffleHead` logs.

    Args:
        threshold: η in [0, 1]. Above 1 it is plain cross-entropy.
        loss_weight: Factor of the loss.
        class_weight: One weight per class, or None.
        loss_name: Key in the loss dict; it has to contain "loss".
    """

    def __init__(
        self,
        threshold: float = 0.9,
        loss_weight: float = 1.0,
        class_weight: list[float] | None = None,
        loss_name: str = 'loss_abce',
    ) -> None:
        super().__init__()
        self.threshold = threshold
        self.loss_weight = loss_weight
        self.class_weight = class_weight
        self.loss_name = loss_name
        self.pixels: Tensor | None = None

    def forward(
        self,
        cls_score: Tensor,
        label: Tensor,
        weight: Tensor | None = None,
        ignore_index: int = 255,
    ) -> Tensor:
        """Computes the loss; see `bootstrapped_cross_entropy`.

        Args:
            cls_score: `(N, C, H, W)` logits.
            label: `(N, H, W)`.
            weight: MMSeg's pixel weights; they do not go together with bootstrapping.
            ignore_index: Label of the pixels without truth.

        Returns:
            The weighted loss, a scalar.

        Raises:
            ValueError: If pixel weights are given: a pixel sampler picks hard pixels too.
        """
        if weight is not None:
            raise ValueError(
                'BootstrappedCrossEntropy picks the pixels itself: set decode_head.sampler=None'
            )
        class_weight = None
        if self.class_weight is not None:
            class_weight = cls_score.new_tensor(self.class_weight)
        counts = pixels_below(cls_score, label, self.threshold, ignore_index)
        self.pixels = counts.sum() / (label != ignore_index).sum().clamp(min=1)
        return self.loss_weight * _mean_cross_entropy(
            cls_score, label, counts, ignore_index, class_weight
        )


def _mean_cross_entropy(
    seg_logits: Tensor,
    label: Tensor,
    counts: Tensor,
    ignore_index: int,
    class_weight: Tensor | None,
) -> Tensor:
    """The mean over the pixels that count, given as `(N, H, W)` bool."""
    loss = F.cross_entropy(
        seg_logits, label, weight=class_weight, ignore_index=ignore_index, reduction='none'
    )
    return (loss * counts).sum() / counts.sum().clamp(min=1)
