"""Losses on the auxiliary predictions: L_u, Eq. 2, L_w, section 3.3, and L_pw, supplement B.2.

From a loss to its value:

1. `term` states the loss of an iteration as a `PixelTerm`: a distance, the weight of each pixel and
   the scale that makes their sum a mean (`pixel_term.py`).
2. `PerturbedDecoderBank.loss` gives the terms of all losses to `chunked_loss`, with the projected
   perturbed features (`chunked_loss.py`).
3. `plan_chunks` picks what computes a chunk of positions, and its size (`chunk_step.py`).
4. A `ChunkStep` decodes the chunk, sums pixel weight · distance of each term and differentiates, in
   PyTorch; a `NativeChain` or a `TritonChain` does the same in one kernel.
5. `chunked_loss` adds up the chunks; a term's value is its scale times the sum.

The distances of L_u are those of supplement B.1, its confidence masking is that of B.2. `p` is the
main decoder's distribution at a pixel, `q` an auxiliary decoder's; every distance of L_u is a mean
over the C classes.
"""

from dataclasses import replace
from typing import Any

import torch
from mmseg.registry import MODELS
from torch import Tensor, nn

from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.stacked_decoders import softmax
from mmseg_cct.utils.ranges import at_least, in_unit, optional, ranges

from .pixel_term import Distance, PixelTargets, PixelTerm

# Marks the pixels without a pseudo label; MMSeg pads label maps with it too.
IGNORED = 255


def mse_distance(seg_logits: Tensor, probabilities: Tensor) -> Tensor:
    """(1/C) Σ_c (p - q)²: logits of q `(K, C, ...)` and p `(C, ...)` give `(K, ...)`."""
    return (softmax(seg_logits) - probabilities).square().mean(1)


def kl_distance(seg_logits: Tensor, probabilities: Tensor) -> Tensor:
    """(1/C) Σ_c p log(p / q); shapes as in `mse_distance`."""
    log_q = seg_logits.log_softmax(1)
    return (torch.xlogy(probabilities, probabilities) - probabilities * log_q).mean(1)


def js_distance(seg_logits: Tensor, probabilities: Tensor) -> Tensor:
    """½ KL(p ‖ m) + ½ KL(q ‖ m), m = ½ (p + q); shapes as in `mse_distance`."""
    log_q = seg_logits.log_softmax(1)
    q = log_q.exp()
    # m is clamped where both underflow; there the two terms below are 0 whatever log m is
    log_m = (0.5 * (probabilities + q)).clamp(min=torch.finfo(q.dtype).tiny).log()
    to_p = torch.xlogy(probabilities, probabilities) - probabilities * log_m
    to_q = q * (log_q - log_m)
    return 0.5 * (to_p + to_q).mean(1)


class ConsistencyLoss(nn.Module):
    """L_u, the mean of a distance over auxiliary decoders, valid pixels and classes.

    Args:
        loss_weight: ω_u; a `RampUpHook` raises it during training.
        confidence_threshold: β in [0, 1]; only pixels with max_c p > β count. None counts all
            that are not padding.
        reference_classes: Number of classes that `loss_weight` was chosen for. An error weighs more
            in a mean over fewer classes, so L_u is scaled by C / reference_classes, at most 1. None
            never scales, as in the paper.

    Examples:
        >>> auxiliary, main = torch.randn(2, 5, 8, 8), torch.randn(2, 5, 8, 8).softmax(1)
        >>> mse = MSEConsistency()(auxiliary, main)
        >>> expected = (auxiliary.softmax(1) - main).square().mean()
        >>> bool(torch.isclose(mse, expected))
        True
    """

    distance: Distance  # at each pixel

    @ranges(confidence_threshold=optional(in_unit))
    def __init__(
        self,
        loss_weight: float = 30.0,
        confidence_threshold: float | None = None,
        reference_classes: int | None = None,
    ) -> None:
        super().__init__()
        self.loss_weight = loss_weight
        self.confidence_threshold = confidence_threshold
        self.reference_classes = reference_classes

    def forward(
        self, seg_logits: Tensor, probabilities: Tensor, valid: Tensor | None = None
    ) -> Tensor:
        """Computes L_u of a single prediction, 0-dimensional, without ω_u.

        Logits and probabilities, the latter without gradient, are `(N, C, H, W)`; `valid` is
        `(N, 1, H, W)` bool, False at padding.
        """
        # log-probabilities are logits
        term = self.term(PixelTargets(probabilities.log(), None, 1, stride=1, valid=valid))
        logits = seg_logits.float().transpose(0, 1).unsqueeze(0)
        distance = term.distance(logits, probabilities.transpose(0, 1))
        return (term.scale * (term.pixel_weight.squeeze(1) * distance).sum()).to(distance.dtype)

    def term(self, targets: PixelTargets) -> PixelTerm:
        """States L_u of one iteration as a sum over decoders and pixels."""
        pixel_weight = targets.valid_pixels
        if self.confidence_threshold is not None:
            # image by image: no second copy of all predictions
            images = (image.to(pixel_weight.dtype) for image in targets.seg_logits)
            confidence = [image.softmax(0).amax(0, keepdim=True) for image in images]
            confident = torch.stack(confidence) > self.confidence_threshold
            pixel_weight = pixel_weight * confident
        # fewer classes than ω_u was chosen for: the mean over them is larger
        ratio = max((self.reference_classes or 0) / targets.seg_logits.shape[1], 1)
        values = targets.num_decoders * ratio
        return targets.term(type(self).distance, pixel_weight, values, self.loss_weight)


@MODELS.register_module()
class MSEConsistency(ConsistencyLoss):
    """L_u with the squared error ‖p - q‖²/C, the paper's default."""

    distance = staticmethod(mse_distance)


@MODELS.register_module()
class KLConsistency(ConsistencyLoss):
    """L_u with the Kullback-Leibler divergence KL(p ‖ q)/C."""

    distance = staticmethod(kl_distance)


@MODELS.register_module()
class JSConsistency(ConsistencyLoss):
    """L_u with the Jensen-Shannon divergence JS(p, q)/C."""

    distance = staticmethod(js_distance)


def label_cross_entropy(seg_logits: Tensor, labels: Tensor) -> Tensor:
    """-log q of the labelled class: logits `(K, C, R, Q)` and ids `(1, R, Q)` give `(K, R, Q)`."""
    index = labels.unsqueeze(0).expand(seg_logits.shape[0], -1, -1, -1)
    return -seg_logits.log_softmax(1).gather(1, index).squeeze(1)


@MODELS.register_module()
class WeakCrossEntropy(nn.Module):
    """L_w, the mean cross-entropy over auxiliary decoders and pseudo-labelled pixels.

    Args:
        loss_weight: ω_w; a `RampUpHook` raises it during training.

    Raises:
        UserError: If the unlabelled images carry no pseudo labels when training starts.
    """

    # `(C,)`, the weight of a pixel by its pseudo label, in [0, 1]; `WeakMasksHook` sets it. The
    # mean stays that over all pseudo-labelled pixels: what one class loses, no other gains.
    class_weight: Tensor | None = None

    def __init__(self, loss_weight: float = 0.4) -> None:
        super().__init__()
        self.loss_weight = loss_weight

    def term(self, targets: PixelTargets) -> PixelTerm:
        """States L_w of one iteration, without ω_w, as a sum over decoders and pixels."""
        if targets.labels is None:
            key, problem = 'model.auxiliary_head.loss_weak', 'no `pseudo_sem_seg` in the samples'
            raise UserError(key, problem, 'pseudo labels, or loss_weak=None')
        valid = targets.labels != IGNORED
        labels = targets.labels.masked_fill(~valid, 0)  # an index must exist; its weight is 0
        pixel_weight = valid.to(targets.valid_pixels) * targets.valid_pixels
        values = targets.num_decoders, self.loss_weight
        term = targets.term(label_cross_entropy, pixel_weight, *values, labels=labels)
        if self.class_weight is None:
            return term
        weight = self.class_weight[labels].to(pixel_weight)
        return replace(term, pixel_weight=pixel_weight * weight)


def variance(seg_logits: Tensor, target: Tensor) -> Tensor:
    """(1/K) Σ_k ‖q_k - q̄‖², `(1, ...)`, of logits `(K, C, ...)`; the target is ignored."""
    q = softmax(seg_logits)
    return (q - q.mean(0, keepdim=True)).square().sum(1).mean(0, keepdim=True)


@MODELS.register_module()
class PairwiseVariance(nn.Module):
    """L_pw of a random subset of the decoders, drawn in each iteration.

    Args:
        loss_weight: λ_pw.
        num_decoders: Size of the subset, at least 2; a smaller bank takes part as a whole.
    """

    @ranges(num_decoders=at_least(2))  # one prediction has no variance
    def __init__(self, loss_weight: float = 1.0, num_decoders: int = 8) -> None:
        super().__init__()
        self.loss_weight = loss_weight
        self.num_decoders = num_decoders

    def term(self, targets: PixelTargets) -> PixelTerm:
        """Draws the subset and states L_pw of one iteration as a sum over pixels."""
        order = torch.randperm(targets.num_decoders, device=targets.seg_logits.device)
        options: Any = dict(loss_weight=self.loss_weight, decoders=order[: self.num_decoders])
        return targets.term(variance, targets.valid_pixels, values_per_pixel=1, **options)
