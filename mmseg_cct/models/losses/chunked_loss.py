"""Losses on K auxiliary predictions, differentiated chunk by chunk in the forward pass.

A decoder maps each feature position on its own and every loss is a sum over positions. So the
predictions at a chunk of positions, their losses and the gradients are computed and freed before
the next chunk: no tensor of size K×N×C×H×W ever exists. What stays are the gradients with respect
to the projected features and to the decoders' parameters.

Without chunks, autograd computes the same loss and gradients from::

    seg_logits = decode(projected, chain)  # (K, C, R, Q)
    loss = 0
    for term in terms:
        target = main_logits.softmax(0) if term.labels is None else term.labels
        chosen = seg_logits if term.decoders is None else seg_logits[term.decoders]
        loss += term.factor * (term.pixel_weight * term.distance(chosen, target)).sum()

Shapes: `K` decoders, `C` classes, `B` channels of their activations (C in the paper), `P` feature
positions, `p` positions of a chunk, `R` and `Q` sub-pixels (see `subpixel.py`).
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor

from mmseg_cct.models.layers.chunking import Chunking, fill_up, join
from mmseg_cct.models.layers.stacked_decoders import FLOAT16_GRADIENT, FLOAT16_SUMMANDS, Chain
from mmseg_cct.models.layers.subpixel import subpixel_chunks

from .chunk_step import ChunkPlan, ChunkStep, TermTensors, plan_chunks
from .pixel_term import PixelTargets, PixelTerm


class _LossFromChunks(torch.autograd.Function):
    """The loss summed over chunks; the forward pass computes the gradients too."""

    @staticmethod
    def forward(
        ctx: Any,
        plan: ChunkPlan,
        targets: Iterable[tuple[Tensor, list[TermTensors]]],
        scale: Tensor,
        projected: Tensor,
        *parameters: Tensor,
    ) -> tuple:
        """Runs all chunks; `parameters` are L weights, then L biases.

        `targets` are the main logits `(C, R, Q)` and the terms of each chunk, `scale` the factor
        taken out of the loss. `projected` `(K, B, P)` is overwritten by its gradient, chunk by
        chunk. Returns the total loss, the only differentiable result, the count of agreeing
        decoders `(s², P)` or None and, for each term, its sums by decoder.
        """
        levels = len(parameters) // 2
        ctx.set_materialize_grads(False)  # only the first result has a gradient
        # by group of decoders: parameters; their gradients and the terms' values, summed
        group_size, chunk_size = plan.num_decoders, plan.num_positions
        starts = range(0, len(projected), group_size)
        groups = [[tensor[i : i + group_size] for tensor in parameters] for i in starts]
        sums: list = [None] * len(groups)
        agreeing = []
        # the type of the projected features is the compute type, in autocast too
        with torch.autocast(projected.device.type, enabled=False):
            for chunk, (main_logits, terms) in zip(projected.split(chunk_size, -1), targets):
                num_valid = chunk.shape[-1]  # the padding of the last chunk has pixel weight 0
                counts = []
                for i, features in enumerate(chunk.split(group_size)):
                    weights, biases = groups[i][:levels], groups[i][levels:]
                    (grad, *parameter_grads), values, count = plan.compute(
                        fill_up(features, chunk_size), weights, biases, main_logits, terms
                    )
                    features.copy_(grad[..., :num_valid])  # takes their place
                    addends = (*itertools.chain(*parameter_grads), *values)
                    sums[i] = tuple(map(torch.add, sums[i], addends)) if sums[i] else addends
                    counts.append(count)
                if counts[0] is not None:
                    count = reduce(torch.add, counts)
                    agreeing.append(count.view(-1, chunk_size)[:, :num_valid])
        # sums over all chunks, joined over the groups of decoders
        joined = [join(parts) for parts in zip(*sums)]
        grads, by_term = joined[: len(parameters)], joined[len(parameters) :]
        weighted = [term.factor * value.sum() for term, value in zip(terms, by_term)]
        loss = scale * reduce(torch.add, weighted)
        ctx.gradients = (projected, *grads)
        ctx.scale = scale
        agreement_map = join(agreeing, -1) if agreeing else None
        ctx.mark_non_differentiable(*by_term, *filter(lambda t: t is not None, [agreement_map]))
        return loss, agreement_map, *by_term

    @staticmethod
    def backward(ctx: Any, grad_total: Tensor, *_: Tensor) -> tuple:
        """Scales the gradients of the forward pass in place."""
        if torch.is_grad_enabled():
            remedy = 'call backward() without create_graph=True'
            raise RuntimeError(f'the auxiliary loss cannot be differentiated twice; {remedy}')
        if ctx.gradients is None:
            # handed over, not kept: they are the largest tensors of the branch
            problem = 'backward() was called a second time on the loss of the auxiliary decoders'
            raise RuntimeError(f'{problem}; compute the loss again')
        factor = grad_total * ctx.scale
        projected, *parameters = ctx.gradients
        ctx.gradients = None
        if parameters:
            torch._foreach_mul_(parameters, factor)
        return None, None, None, projected.mul_(factor), *parameters


def chunked_loss(
    projected: Tensor,
    chain: Chain,
    terms: Sequence[PixelTerm],
    targets: PixelTargets,
    chunking: Chunking,
    count_agreement: bool = False,
) -> tuple[Tensor, list[Tensor], Tensor | None]:
    """Weighted sum of loss terms on the predictions of K decoders.

    1. A scale is taken out of the loss, so that float16 can hold the gradients of the chunks.
    2. `plan_chunks` picks what computes a chunk, and the decoders and positions of a chunk.
    3. The main prediction, labels and pixel weights are cut into chunks as they are needed.
    4. At each chunk a group of decoders predicts, in the type of the projected perturbed features
       `(K, B, P)`; its losses and their gradients are computed, and the predictions are freed.
    5. The gradient of the chunk's features takes their place; those of the parameters and the
       values of the terms are added up over the chunks.
    6. The loss is the scale times the weighted sum of the values.
    7. `backward` multiplies the gradients by the scale and the gradient of the loss, in place, and
       hands them over to the projection and the perturbations.

    Returns the total loss, Σ ω · term, differentiable with respect to `projected` and the chain;
    each term's value by decoder, unweighted and detached: their sum is the term; and, with
    `count_agreement`, the share of the K decoders that choose the target's class, `(s², P)` in
    sub-pixel layout.
    """
    # The scale follows the largest ω · scale of a term. Terms of few pixels, or none, may have
    # larger gradients and count less: they must not push those of the others below what float16
    # can hold.
    summands, most = FLOAT16_SUMMANDS * FLOAT16_GRADIENT, 1 / FLOAT16_GRADIENT
    factors = [term.factor * (term.total_weight / summands).clamp(max=most) for term in terms]
    scale = reduce(torch.maximum, factors)
    scale = scale + (scale == 0)  # all ω may be 0, or no pixel count
    step = ChunkStep(tuple(t.distance for t in terms), chain.final_activation, count_agreement)
    cut_targets = partial(_cut_targets, targets, terms, scale)
    plan = plan_chunks(step, projected, chain, terms, chunking, targets.stride, cut_targets)
    chunks = cut_targets(plan.num_positions)
    loss, agreeing, *sums = _LossFromChunks.apply(
        plan, chunks, scale.float(), projected, *chain.weights, *chain.biases
    )
    values = [value * term.scale.to(value) for value, term in zip(sums, terms)]
    return loss, values, None if agreeing is None else agreeing / len(projected)


def _cut_targets(
    targets: PixelTargets, terms: Sequence[PixelTerm], scale: Tensor, num_positions: int
) -> Iterator[tuple[Tensor, list[TermTensors]]]:
    """Cuts the main decoder's logits and the tensors of every term into chunks of positions."""

    def cut(pixels: Tensor | None) -> Iterator[Tensor | None]:
        if pixels is None:
            return itertools.repeat(None)
        return subpixel_chunks(pixels, targets.stride, num_positions, targets.positions)

    def tensors_of(term: PixelTerm) -> Iterator[TermTensors]:
        factor = (term.factor / scale).to(term.pixel_weight.dtype)
        for labels, weight in zip(cut(term.labels), cut(term.pixel_weight)):
            yield TermTensors(labels, weight, factor, term.decoders)

    for main_logits, *term_tensors in zip(cut(targets.seg_logits), *map(tensors_of, terms)):
        yield main_logits, term_tensors
