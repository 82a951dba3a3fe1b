"""Weakly supervised loss L_w, section 3.3: cross-entropy with pseudo labels."""

from mmseg.registry import MODELS
from torch import Tensor, nn

from mmseg_cct.errors import UserError

from .pixel_term import PixelTargets, PixelTerm


def label_cross_entropy(seg_logits: Tensor, labels: Tensor) -> Tensor:
    """-log q of the labelled class: logits `(K, C, R, Q)` and ids `(1, R, Q)` give `(K, R, Q)`."""
    index = labels.unsqueeze(0).expand(seg_logits.shape[0], -1, -1, -1)
    return -seg_logits.log_softmax(1).gather(1, index).squeeze(1)


@MODELS.register_module()
class WeakCrossEntropy(nn.Module):
    """L_w, the mean cross-entropy over auxiliary decoders and pseudo-labelled pixels.

    Args:
        loss_weight: ω_w; a `RampUpHook` raises it during training.
        ignore_index: Label of the pixels without a pseudo label.

    Raises:
        UserError: If the unlabelled images carry no pseudo labels when training starts.
    """

    def __init__(self, loss_weight: float = 0.4, ignore_index: int = 255) -> None:
        super().__init__()
        self.loss_weight = loss_weight
        self.ignore_index = ignore_index

    def term(self, targets: PixelTargets) -> PixelTerm:
        """States L_w of one iteration, without ω_w, as a sum over decoders and pixels."""
        if targets.labels is None:
            raise UserError(
                'model.auxiliary_head.loss_weak',
                'the unlabelled samples carry no `pseudo_sem_seg`',
                'pseudo labels, or loss_weak=None',
            )
        valid = targets.labels != self.ignore_index
        return targets.term(
            label_cross_entropy,
            valid.to(targets.valid_pixels) * targets.valid_pixels,
            targets.num_decoders,
            self.loss_weight,
            labels=targets.labels.masked_fill(~valid, 0),  # an index must exist; its weight is 0
        )
