"""Losses on K auxiliary predictions, differentiated chunk by chunk in the forward pass.

A decoder maps each feature position on its own and every loss is a sum over positions. So the
predictions at a chunk of positions, their losses and the gradients are computed and freed before
the next chunk: no tensor of size K×N×C×H×W ever exists. What stays are the gradients with respect
to the projected features and to the decoders' parameters.

Shapes: `K` decoders, `C` classes, `B` channels of their activations (C in the paper), `P` feature
positions, `p` positions of a chunk, `R` and `Q` sub-pixels (see `subpixel.py`).
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mmseg_cct.models.layers.chunking import Chunking, fill_up, join
from mmseg_cct.models.layers.stacked_decoders import FLOAT16_GRADIENT, FLOAT16_SUMMANDS, Chain
from mmseg_cct.models.layers.subpixel import subpixel_chunks

from .chunk_step import ChunkStep, TermTensors, choose_way
from .pixel_term import PixelTargets, PixelTerm


class _ChunkPlan(NamedTuple):
    """The steps in which K decoders and P positions are processed."""

    step: Callable  # a `ChunkStep`, compiled or not, or a kernel's
    targets: Iterable[tuple[Tensor, list[TermTensors]]]  # main logits (C, R, Q), terms; by chunk
    scale: Tensor  # of the loss, taken out of the terms' factors
    num_decoders: int  # of a step, a divisor of K
    num_positions: int  # p, those of a step


class _LossFromChunks(torch.autograd.Function):
    """The loss summed over chunks; the forward pass computes the gradients too."""

    @staticmethod
    def forward(ctx: Any, plan: _ChunkPlan, projected: Tensor, *parameters: Tensor) -> tuple:
        """Runs all chunks; `parameters` are L weights, then L biases.

        `projected` `(K, B, P)` is overwritten by its gradient, chunk by chunk. Returns the total
        loss, the only differentiable result, the count of agreeing decoders `(s², P)` or None and,
        for each term, its sums by decoder.
        """
        levels = len(parameters) // 2
        ctx.set_materialize_grads(False)  # only the first result has a gradient
        # by group of decoders: parameters; their gradients and the terms' sums
        together = plan.num_decoders
        starts = range(0, len(projected), together)
        groups = [[tensor[i : i + together] for tensor in parameters] for i in starts]
        sums: list = [None] * len(groups)
        agreeing = []
        size = plan.num_positions
        # the type of the projected features is the compute type, in autocast too
        with torch.autocast(projected.device.type, enabled=False):
            for chunk, (main_logits, terms) in zip(projected.split(size, -1), plan.targets):
                valid = chunk.shape[-1]  # the rest of the last chunk has pixel weight 0
                counts = []
                for i, part in enumerate(chunk.split(together)):
                    (grad, *part_grads), values, count = plan.step(
                        fill_up(part, size),
                        groups[i][:levels],
                        groups[i][levels:],
                        main_logits,
                        terms,
                    )
                    part.copy_(grad[..., :valid])  # takes the place of the features
                    found = (*itertools.chain(*part_grads), *values)
                    sums[i] = found if sums[i] is None else tuple(map(torch.add, sums[i], found))
                    counts.append(count)
                if counts[0] is not None:
                    agreeing.append(reduce(torch.add, counts).view(-1, size)[:, :valid])
        # sums over all chunks, joined over the groups of decoders
        joined = [join(parts) for parts in zip(*sums)]
        grads, by_term = joined[: len(parameters)], joined[len(parameters) :]
        weighted = [term.factor * value.sum() for term, value in zip(terms, by_term)]
        loss = plan.scale * reduce(torch.add, weighted)
        ctx.gradients = (projected, *grads)
        ctx.scale = plan.scale
        agreement_map = join(agreeing, -1) if agreeing else None
        ctx.mark_non_differentiable(*by_term, *filter(lambda t: t is not None, [agreement_map]))
        return loss, agreement_map, *by_term

    @staticmethod
    def backward(ctx: Any, grad_total: Tensor, *_: Tensor) -> tuple:
        """Scales the gradients of the forward pass in place."""
        if torch.is_grad_enabled():
            raise RuntimeError(
                'the loss of the auxiliary decoders cannot be differentiated twice; '
                'call backward() without create_graph=True'
            )
        if ctx.gradients is None:
            # handed over, not kept: they are the largest tensors of the branch
            raise RuntimeError(
                'backward() was called a second time on the loss of the auxiliary decoders; '
                'compute the loss again'
            )
        factor = grad_total * ctx.scale
        projected, *parameters = ctx.gradients
        ctx.gradients = None
        if parameters:
            torch._foreach_mul_(parameters, factor)
        return None, projected.mul_(factor), *parameters


def chunked_loss(
    projected: Tensor,
    chain: Chain,
    terms: Sequence[PixelTerm],
    targets: PixelTargets,
    chunking: Chunking,
    count_agreement: bool = False,
) -> tuple[Tensor, list[Tensor], Tensor | None]:
    """Weighted sum of loss terms on the predictions of K decoders.

    The decoders compute in the type of the projected perturbed features `(K, B, P)`, which their
    gradient overwrites.

    Returns the total loss, Σ ω · term, differentiable with respect to `projected` and the chain;
    each term's value by decoder, unweighted and detached: their sum is the term; and, with
    `count_agreement`, the share of the K decoders that choose the target's class, `(s², P)` in
    sub-pixel layout.
    """
    # A factor taken out of the loss so that float16 can hold the chunks' gradients; it follows the
    # largest ω · scale. Terms of few pixels, or none, may have larger gradients and count less:
    # they must not push those of the others below what float16 can hold.
    summands, most = FLOAT16_SUMMANDS * FLOAT16_GRADIENT, 1 / FLOAT16_GRADIENT
    factors = [term.factor * (term.total_weight / summands).clamp(max=most) for term in terms]
    scale = reduce(torch.maximum, factors)
    scale = scale + (scale == 0)  # all ω may be 0, or no pixel count
    step = ChunkStep(tuple(t.distance for t in terms), chain.final_activation, count_agreement)
    cut = partial(_cut_targets, targets, terms, scale)
    run, together, size = choose_way(step, projected, chain, terms, chunking, targets.stride, cut)
    plan = _ChunkPlan(run, cut(size), scale.float(), together, size)
    loss, agreeing, *sums = _LossFromChunks.apply(plan, projected, *chain.weights, *chain.biases)
    values = [value * term.scale.to(value) for value, term in zip(sums, terms)]
    return loss, values, None if agreeing is None else agreeing / len(projected)


def _cut_targets(
    targets: PixelTargets, terms: Sequence[PixelTerm], scale: Tensor, size: int
) -> Iterator[tuple[Tensor, list[TermTensors]]]:
    """Cuts the main decoder's logits and the tensors of every term into chunks of positions."""

    def cut(pixels: Tensor | None) -> Iterator[Tensor | None]:
        if pixels is None:
            return itertools.repeat(None)
        return subpixel_chunks(pixels, targets.stride, size, targets.positions)

    def tensors_of(term: PixelTerm) -> Iterator[TermTensors]:
        factor = (term.factor / scale).to(term.pixel_weight.dtype)
        for labels, weight in zip(cut(term.labels), cut(term.pixel_weight)):
            yield TermTensors(labels, weight, factor, term.decoders)

    for main_logits, *of_terms in zip(cut(targets.seg_logits), *map(tensors_of, terms)):
        yield main_logits, of_terms
