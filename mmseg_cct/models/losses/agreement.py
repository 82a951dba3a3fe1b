"""How often auxiliary decoders choose the main decoder's class: a figure for the log, no loss."""

from torch import Tensor

from .pixel_term import PixelTargets, PixelTerm


def agreement(seg_logits: Tensor, probabilities: Tensor) -> Tensor:
    """1 where the largest logit is that of the most probable class, else 0.

    The maximum, which a compiled chunk takes for its softmax anyway, is compared with the logit of
    that class: an argmax over all auxiliary logits would cost a loop of its own.

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
    """The share of pixels and decoders that agree, as a term of weight 0.

    Args:
        targets: What the auxiliary predictions are compared with.

    Returns:
        The term.
    """
    return targets.term(agreement, targets.all_pixels, targets.num_decoders, loss_weight=0.0)
