"""Agreement of auxiliary and main predictions: a figure for the log, not a loss."""

from torch import Tensor

from .pixel_term import PixelTargets, PixelTerm


def agreement(seg_logits: Tensor, probabilities: Tensor) -> Tensor:
    """1 where the auxiliary prediction is the main decoder's class, else 0.

    Compares the maximum, which a compiled chunk computes for its softmax anyway, with the logit of
    the main class: an argmax over all auxiliary logits would need a loop of its own.

    Args:
        seg_logits: `(K, C, R, Q)`, auxiliary.
        probabilities: `(C, R, Q)`, the main decoder's.

    Returns:
        `(K, R, Q)`, without gradient.
    """
    seg_logits = seg_logits.detach()
    main_class = probabilities.argmax(0, keepdim=True).expand(len(seg_logits), 1, -1, -1)
    at_main_class = seg_logits.gather(1, main_class)
    return (at_main_class.squeeze(1) == seg_logits.amax(1)).to(seg_logits.dtype)


def agreement_term(targets: PixelTargets) -> PixelTerm:
    """Share of valid pixels and decoders that agree, in [0, 1], as a term of weight 0."""
    return targets.term(agreement, targets.valid_pixels, targets.num_decoders, loss_weight=0.0)
