"""Losses on K auxiliary predictions, with gradients computed chunk by chunk in the forward pass.

A decoder maps every feature position on its own and every loss is a sum over positions, so the
predictions of one chunk of positions, their loss and its gradients can be computed and forgotten
before the next chunk: nothing of size K×N×C×H×W ever exists. What is kept are the gradients with
respect to the projected features and the decoders' parameters.

Shapes: `K` decoders, `C` classes, `P` feature positions, `p` positions of a chunk, `n` chunks, `R`
and `Q` sub-pixels (see `subpixel.py`).
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .chunking import Chunking, split_positions
from .decoders import Chain, decode
from .losses import PixelTerm
from .losses.pixel_term import Distance

# per term: target (..., R, Q), pixel_weight (R, Q), factor (), decoders (k,) or None
TermTensors = tuple[Tensor, Tensor, Tensor, Tensor | None]


@dataclass(frozen=True)
class ChunkLoss:
    """The losses of one chunk; hashable by value, so that it is compiled once per kind of loss.

    Attributes:
        distances: One per term.
        final_activation: Whether the decoders end in a ReLU.
    """

    distances: tuple[Distance, ...]
    final_activation: bool

    def __call__(self, projected: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor],
                 terms: Sequence[TermTensors]) -> tuple[tuple, tuple[Tensor, ...]]:
        """Computes gradients and values.

        Args:
            projected: `(K, C, p)`.
            weights: `(K, 4C, C)` per level.
            biases: `(K, 4C, 1)` per level.
            terms: The tensors of each term.

        Returns:
            The gradients of Σ factor · Σ pixel_weight · distance with respect to the first three
            arguments, and for each term Σ_pixel pixel_weight · distance by decoder, `(K,)`.
        """

        def total(projected, weights, biases):
            seg_logits = decode(projected, Chain(weights, biases, self.final_activation))
            if seg_logits.dtype in (torch.float16, torch.bfloat16):
                seg_logits = seg_logits.float()
            values = []
            for distance, (target, pixel_weight, _, decoders) in zip(self.distances, terms):
                rows = seg_logits if decoders is None else seg_logits[decoders]
                values.append((distance(rows, target) * pixel_weight).sum((1, 2)))
            weighted = [factor * value.sum() for value, (_, _, factor, _) in zip(values, terms)]
            return sum(weighted), tuple(values)

        return torch.func.grad(total, argnums=(0, 1, 2), has_aux=True)(projected, weights, biases)


class _ChunkedLoss(torch.autograd.Function):
    """Σ over chunks of `ChunkLoss`, with the gradients at hand when backward comes."""

    @staticmethod
    def forward(ctx: Any, step: Callable, chunks_of_terms: Sequence[Sequence[TermTensors]],
                scale: Tensor, num_levels: int, chunks: Tensor, *parameters: Tensor) -> tuple:
        """Runs all chunks.

        Args:
            ctx: Autograd's context.
            step: A `ChunkLoss`, maybe compiled.
            chunks_of_terms: For each chunk the `TermTensors` of every term.
            scale: 0-dimensional factor, taken out of the terms' factors: in the chunks gradients
                are of the order of 1, which float16 can hold.
            num_levels: L.
            chunks: `(n, K, C, p)`; its memory then holds its gradient.
            *parameters: L weights, then L biases.

        Returns:
            The total loss and, for each term, its sums by decoder (not differentiable).
        """
        weights, biases = parameters[:num_levels], parameters[num_levels:]
        grads = [torch.zeros_like(parameter) for parameter in parameters]
        sums: tuple[Tensor, ...] | None = None
        with torch.autocast(chunks.device.type, enabled=False):
            for chunk, terms in zip(chunks, chunks_of_terms):
                (grad, *chunk_grads), values = step(chunk, weights, biases, terms)
                chunk.copy_(grad)  # the features are done with: their gradient takes their place
                for total, chunk_grad in zip(grads, itertools.chain(*chunk_grads)):
                    total += chunk_grad
                sums = values if sums is None else tuple(map(torch.add, sums, values))
        assert sums is not None
        factors = [factor for _, _, factor, _ in chunks_of_terms[0]]
        loss = scale * sum(factor * value.sum() for factor, value in zip(factors, sums))
        ctx.gradients = (chunks, *grads)
        ctx.scale = scale
        ctx.mark_non_differentiable(*sums)
        return loss, *sums

    @staticmethod
    def backward(ctx, grad_total, *_):
        """Scales the gradients that the forward pass has computed, in place."""
        if torch.is_grad_enabled():
            raise RuntimeError(
                'the loss of the auxiliary decoders cannot be differentiated twice: its gradients '
                'are computed in the forward pass; call backward() without create_graph=True')
        if ctx.gradients is None:
            raise RuntimeError(
                'backward() was called a second time on the loss of the auxiliary decoders, whose '
                'gradients are handed over, not kept; compute the loss again')
        factor = grad_total * ctx.scale
        gradients = [gradient.mul_(factor) for gradient in ctx.gradients]
        ctx.gradients = None
        return None, None, None, None, *gradients


def chunked_loss(chunks: Tensor, chain: Chain, terms: list[PixelTerm],
                 chunking: Chunking) -> tuple[Tensor, list[Tensor]]:
    """The weighted sum of loss terms on the predictions of K decoders.

    Args:
        chunks: `(n, K, C, p)`, projected perturbed features, cut by `CollectChunks`; the decoders
            compute in its type. Its memory is used up: it holds its gradient afterwards.
        chain: The decoders' sub-pixel convolutions.
        terms: The losses, on the same positions. The list is emptied: a term's target is a copy of
            the main prediction, and it is let go once it is cut into chunks.
        chunking: Whether to compile.

    Returns:
        The total loss, Σ ω · term, differentiable with respect to `chunks` and the chain; and each
        term's value by decoder, unweighted and detached: their sum is the term.
    """
    distances, scales = tuple(term.distance for term in terms), [term.scale for term in terms]
    # Σ over decoders and pixels of gradients of order 1, so this brings the mean back
    scale = scales[0]
    split = []
    while terms:
        split.append(_split_term(terms.pop(0), scale, chunks.shape[-1]))
    step = chunking.prepare(ChunkLoss(distances, chain.final_activation), chunks.device)
    loss, *sums = _ChunkedLoss.apply(step, list(zip(*split)), scale.float(), len(chain.weights),
                                     chunks, *chain.weights, *chain.biases)
    return loss, [value * scale.to(value) for value, scale in zip(sums, scales)]


def _split_term(term: PixelTerm, scale: Tensor, size: int) -> list[TermTensors]:
    """The tensors of a term for each chunk."""
    targets = split_positions(term.target.flatten(-2), size).flatten(-2)
    pixel_weights = split_positions(term.pixel_weight.flatten(-2), size).flatten(-2)
    factor = (term.loss_weight * term.scale / scale).to(pixel_weights.dtype)
    return [(target, weight, factor, term.decoders)
            for target, weight in zip(targets, pixel_weights)]
