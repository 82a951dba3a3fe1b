"""Losses on K auxiliary predictions, with gradients computed chunk by chunk in the forward pass.

A decoder maps every feature position on its own and every loss is a sum over positions, so the
predictions of one chunk of positions, their loss and its gradients can be computed and forgotten
before the next chunk: nothing of size K×N×C×H×W ever exists. What is kept are the gradients with
respect to the projected features and the decoders' parameters.

Shapes: `K` decoders, `C` classes, `P` feature positions, `p` positions of a chunk, `R` and `Q`
sub-pixels (see `subpixel.py`).
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from mmseg_cct.models.layers.chunking import Chunking
from mmseg_cct.models.layers.stacked_decoders import (
    Chain,
    as_seg_logits,
    decode_backward,
    decode_levels,
)
from mmseg_cct.models.layers.subpixel import subpixel_chunks
from mmseg_cct.models.losses import PixelTargets, PixelTerm

from .pixel_term import Distance

# per term: labels (1, R, Q) or None, pixel_weight (1, R, Q), factor (), decoders (k,) or None
TermTensors = tuple[Tensor | None, Tensor, Tensor, Tensor | None]


@dataclass(frozen=True)
class ChunkLoss:
    """The losses of one chunk; hashable by value, so that it is compiled once per kind of loss.

    Attributes:
        distances: One per term.
        final_activation: Whether the decoders end in a ReLU.
    """

    distances: tuple[Distance, ...]
    final_activation: bool

    def __call__(
        self,
        projected: Tensor,
        weights: Sequence[Tensor],
        biases: Sequence[Tensor],
        main_logits: Tensor,
        terms: Sequence[TermTensors],
    ) -> tuple[tuple, tuple[Tensor, ...]]:
        """Computes gradients and values.

        Args:
            projected: `(K, C, p)`.
            weights: `(K, 4C, C)` per level.
            biases: `(K, 4C, 1)` per level.
            main_logits: `(C, R, Q)`, the main decoder's.
            terms: The tensors of each term.

        Returns:
            The gradients of Σ factor · Σ pixel_weight · distance with respect to the first three
            arguments, and for each term Σ_pixel pixel_weight · distance by decoder, `(K,)`.
        """

        probabilities = _at_least_float32(main_logits).softmax(0)

        def total(seg_logits):
            values = []
            for distance, (labels, pixel_weight, _, decoders) in zip(self.distances, terms):
                rows = seg_logits if decoders is None else seg_logits[decoders]
                target = probabilities if labels is None else labels
                values.append((distance(rows, target) * pixel_weight).sum((1, 2)))
            weighted = [factor * value.sum() for value, (_, _, factor, _) in zip(values, terms)]
            return sum(weighted), tuple(values)

        chain = Chain(weights, biases, self.final_activation)
        outputs = decode_levels(projected, chain)
        seg_logits = _at_least_float32(as_seg_logits(outputs[-1], chain))
        grad, values = torch.func.grad(total, has_aux=True)(seg_logits)
        return decode_backward(outputs, chain, grad.to(projected.dtype)), values


def _at_least_float32(seg_logits: Tensor) -> Tensor:
    return seg_logits.float() if seg_logits.dtype in (torch.float16, torch.bfloat16) else seg_logits


class _ChunkedLoss(torch.autograd.Function):
    """Σ over chunks of `ChunkLoss`, with the gradients at hand when backward comes."""

    @staticmethod
    def forward(
        ctx: Any,
        step: Callable,
        targets: Iterable[tuple[Tensor, list[TermTensors]]],
        scale: Tensor,
        together: int,
        size: int,
        num_levels: int,
        projected: Tensor,
        *parameters: Tensor,
    ) -> tuple:
        """Runs all chunks.

        Args:
            ctx: Autograd's context.
            step: A `ChunkLoss`, maybe compiled.
            targets: For each chunk the main decoder's logits and the tensors of every term.
            scale: 0-dimensional factor, taken out of the terms' factors: in the chunks gradients
                are of the order of 1, which float16 can hold.
            together: Decoders that a step takes, a divisor of K.
            size: p, positions that a step takes.
            num_levels: L.
            projected: `(K, C, P)`; its memory then holds its gradient.
            *parameters: L weights, then L biases.

        Returns:
            The total loss and, for each term, its sums by decoder (not differentiable).
        """
        grads = [torch.zeros_like(parameter) for parameter in parameters]
        # by group of decoders: parameters, their gradients, and the terms' sums
        starts = range(0, len(projected), together)
        groups = [[tensor[i : i + together] for tensor in parameters] for i in starts]
        group_grads = [[grad[i : i + together] for grad in grads] for i in starts]
        sums: list = [None] * len(groups)
        with torch.autocast(projected.device.type, enabled=False):
            for chunk, (main_logits, terms) in zip(projected.split(size, -1), targets):
                rest = size - chunk.shape[-1]  # of the last chunk; its pixels have weight 0
                for i, part in enumerate(chunk.split(together)):
                    (grad, *part_grads), values = step(
                        F.pad(part, (0, rest)).contiguous(),
                        groups[i][:num_levels],
                        groups[i][num_levels:],
                        main_logits,
                        terms,
                    )
                    # the features are done with: their gradient takes their place
                    part.copy_(grad[..., : size - rest])
                    for total, part_grad in zip(group_grads[i], itertools.chain(*part_grads)):
                        total += part_grad
                    sums[i] = values if sums[i] is None else tuple(map(torch.add, sums[i], values))
        by_term = [torch.cat(parts) for parts in zip(*sums)]
        factors = [factor for _, _, factor, _ in terms]
        loss = scale * sum(factor * value.sum() for factor, value in zip(factors, by_term))
        ctx.gradients = (projected, *grads)
        ctx.scale = scale
        ctx.mark_non_differentiable(*by_term)
        return loss, *by_term

    @staticmethod
    def backward(ctx, grad_total, *_):
        """Scales the gradients that the forward pass has computed, in place."""
        if torch.is_grad_enabled():
            raise RuntimeError(
                'the loss of the auxiliary decoders cannot be differentiated twice: its gradients '
                'are computed in the forward pass; call backward() without create_graph=True'
            )
        if ctx.gradients is None:
            raise RuntimeError(
                'backward() was called a second time on the loss of the auxiliary decoders, whose '
                'gradients are handed over, not kept; compute the loss again'
            )
        factor = grad_total * ctx.scale
        gradients = [gradient.mul_(factor) for gradient in ctx.gradients]
        ctx.gradients = None
        return None, None, None, None, None, None, *gradients


def chunked_loss(
    projected: Tensor,
    chain: Chain,
    terms: Sequence[PixelTerm],
    targets: PixelTargets,
    chunking: Chunking,
) -> tuple[Tensor, list[Tensor]]:
    """The weighted sum of loss terms on the predictions of K decoders.

    Args:
        projected: `(K, C, P)`, projected perturbed features; the decoders compute in its type. Its
            memory is used up: it holds its gradient afterwards.
        chain: The decoders' sub-pixel convolutions.
        terms: The losses.
        targets: What they compare with.
        chunking: How large a chunk is, and whether to compile.

    Returns:
        The total loss, Σ ω · term, differentiable with respect to `projected` and the chain; and
        each term's value by decoder, unweighted and detached: their sum is the term.
    """
    # Σ over decoders and pixels of gradients of order 1, so this brings the mean back
    scale = terms[0].scale
    divisible = all(term.decoders is None for term in terms)
    together, size = chunking.shape(projected, targets.stride, divisible)
    step = chunking.prepare(
        ChunkLoss(tuple(term.distance for term in terms), chain.final_activation), projected.device
    )
    loss, *sums = _ChunkedLoss.apply(
        step,
        _cut_targets(targets, terms, scale, size),
        scale.float(),
        together,
        size,
        len(chain.weights),
        projected,
        *chain.weights,
        *chain.biases,
    )
    return loss, [value * term.scale.to(value) for value, term in zip(sums, terms)]


def _cut_targets(
    targets: PixelTargets, terms: Sequence[PixelTerm], scale: Tensor, size: int
) -> Iterator[tuple[Tensor, list[TermTensors]]]:
    """The main decoder's logits and the tensors of every term, for one chunk after the other."""

    def cut(pixels: Tensor | None) -> Iterator[Tensor | None]:
        if pixels is None:
            return itertools.repeat(None)
        return subpixel_chunks(pixels, targets.stride, size, targets.positions)

    factors = [
        (term.loss_weight * term.scale / scale).to(term.pixel_weight.dtype) for term in terms
    ]
    tensors = [zip(cut(term.labels), cut(term.pixel_weight)) for term in terms]
    for main_logits, *of_terms in zip(cut(targets.seg_logits), *tensors):
        yield (
            main_logits,
            [
                (labels, weight, factor, term.decoders)
                for (labels, weight), factor, term in zip(of_terms, factors, terms)
            ],
        )
