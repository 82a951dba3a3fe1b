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
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mmseg_cct.models.layers.chunking import Chunking
from mmseg_cct.models.layers.native_chain import NativeChain, native_chain
from mmseg_cct.models.layers.stacked_decoders import (
    FLOAT16_GRADIENT,
    FLOAT16_SUMMANDS,
    Chain,
    as_seg_logits,
    decode_backward,
    decode_levels,
)
from mmseg_cct.models.layers.subpixel import subpixel_chunks

from .auxiliary import label_cross_entropy, mse_distance
from .pixel_term import Distance, PixelTargets, PixelTerm

# Distances of the native kernel, in its order.
NATIVE_DISTANCES: tuple[Distance, ...] = (mse_distance, label_cross_entropy)


class TermTensors(NamedTuple):
    """The tensors of one `PixelTerm` at one chunk of positions."""

    labels: Tensor | None  # (1, R, Q) class ids; None for the main decoder's probabilities
    pixel_weight: Tensor  # (1, R, Q) in [0, 1]
    factor: Tensor  # 0-dimensional, ω · scale of the term over the scale of all terms
    decoders: Tensor | None  # (k,) indices of those that the term looks at; None for all


@dataclass(frozen=True)
class ChunkStep:
    """Gradients and values of all terms at one chunk of positions.

    Hashable by value, so that it is compiled once per combination of distances.
    """

    distances: tuple[Distance, ...]  # one per term
    final_activation: bool  # whether the decoders end in a ReLU
    count_agreement: bool  # whether to count the decoders that agree with the target

    def __call__(
        self,
        projected: Tensor,
        weights: Sequence[Tensor],
        biases: Sequence[Tensor],
        main_logits: Tensor,
        terms: Sequence[TermTensors],
    ) -> tuple[tuple, tuple[Tensor, ...], Tensor | None]:
        """Decodes a chunk and differentiates Σ factor · Σ_k Σ_pixel pixel_weight · distance.

        `projected` is `(K, B, p)`, weights and biases are those of a `Chain`, and the main
        decoder's logits are `(C, R, Q)`. Returns the gradients with respect to the first three; for
        each term Σ_pixel pixel_weight · distance by decoder, `(K,)`; and, if it is to be counted,
        how many decoders agree with the target, `(R, Q)`.
        """
        probabilities = _at_least_float32(main_logits).softmax(0)
        chain = Chain(weights, biases, self.final_activation)
        outputs = decode_levels(projected, chain)
        predicted = _at_least_float32(as_seg_logits(outputs[-1], chain))

        agreeing = None
        if self.count_agreement:
            agreeing = agreement(predicted, probabilities).sum(0)

        def total(seg_logits: Tensor) -> tuple[Any, tuple[Tensor, ...]]:
            values = []
            for distance, term in zip(self.distances, terms):
                chosen = seg_logits if term.decoders is None else seg_logits[term.decoders]
                target = probabilities if term.labels is None else term.labels
                values.append((distance(chosen, target) * term.pixel_weight).sum((1, 2)))
            weighted = [term.factor * value.sum() for value, term in zip(values, terms)]
            return sum(weighted), tuple(values)

        grad, values = torch.func.grad(total, has_aux=True)(predicted)
        gradients = decode_backward(outputs, chain, grad.to(projected.dtype))
        return gradients, values, agreeing


def native_step(
    step: ChunkStep,
    kernel: NativeChain,
    projected: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    main_logits: Tensor,
    terms: Sequence[TermTensors],
) -> tuple[tuple, tuple[Tensor, ...], Tensor | None]:
    """Computes the same as a `ChunkStep` by the native kernel; p is a multiple of its tile."""
    seg_logits = main_logits.float().flatten(1, 2).contiguous()
    chain = Chain(weights, biases, step.final_activation)
    chain = chain.map(lambda parameter: parameter.float().contiguous())
    indices = [NATIVE_DISTANCES.index(distance) for distance in step.distances]
    maps: list[Tensor | None] = [None, None, None]
    factors = [0.0, 0.0]
    for index, term in zip(indices, terms):
        maps[index] = term.pixel_weight.float().contiguous()
        factors[index] = float(term.factor)
        if term.labels is not None:
            maps[2] = term.labels.float().contiguous()
    gradients, values, agreeing = kernel.losses(projected.float(), chain, seg_logits, maps, factors)
    counted = agreeing.view_as(main_logits[0]) if step.count_agreement else None
    return gradients, tuple(values[index].float() for index in indices), counted


def _kernel_knows(terms: Sequence[PixelTerm]) -> bool:
    """Whether the native kernel has these losses: each at most once, on all decoders."""
    distances = [term.distance for term in terms]
    once = len(set(distances)) == len(distances) and set(distances) <= {*NATIVE_DISTANCES}
    return once and all(term.decoders is None for term in terms)


def agreement(seg_logits: Tensor, probabilities: Tensor) -> Tensor:
    """1 where the auxiliary prediction is the main decoder's class, else 0; without gradient.

    Logits `(K, C, R, Q)` and the main decoder's probabilities `(C, R, Q)` give `(K, R, Q)`.

    Compares the maximum, which a compiled chunk computes for its softmax anyway, with the logit of
    the main class: an argmax over all auxiliary logits would need a loop of its own. On a CPU `max`
    finds the main class five times as fast as `argmax` does along this axis.
    """
    seg_logits = seg_logits.detach()
    main_class = probabilities.max(0, keepdim=True).indices.expand(len(seg_logits), 1, -1, -1)
    at_main_class = seg_logits.gather(1, main_class)
    return (at_main_class.squeeze(1) == seg_logits.amax(1)).to(seg_logits.dtype)


def _at_least_float32(seg_logits: Tensor) -> Tensor:
    return seg_logits.float() if seg_logits.dtype in (torch.float16, torch.bfloat16) else seg_logits


class _ChunkPlan(NamedTuple):
    """The steps in which K decoders and P positions are processed."""

    step: Callable  # a `ChunkStep`, compiled or not, or `native_step`
    targets: Iterable[tuple[Tensor, list[TermTensors]]]  # main logits (C, R, Q), terms; by chunk
    scale: Tensor  # of the loss, taken out of the terms' factors: see `_common_scale`
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
        grads = [torch.zeros_like(parameter) for parameter in parameters]
        # by group of decoders: parameters, their gradients, and the terms' sums
        together = plan.num_decoders
        starts = range(0, len(projected), together)
        groups = [[tensor[i : i + together] for tensor in parameters] for i in starts]
        group_grads = [[grad[i : i + together] for grad in grads] for i in starts]
        sums: list = [None] * len(groups)
        agreeing = []
        size = plan.num_positions
        with torch.autocast(projected.device.type, enabled=False):
            for chunk, (main_logits, terms) in zip(projected.split(size, -1), plan.targets):
                valid = chunk.shape[-1]  # the rest of the last chunk has pixel weight 0
                counts = []
                for i, part in enumerate(chunk.split(together)):
                    (grad, *part_grads), values, count = plan.step(
                        F.pad(part, (0, size - valid)).contiguous(),
                        groups[i][:levels],
                        groups[i][levels:],
                        main_logits,
                        terms,
                    )
                    part.copy_(grad[..., :valid])  # takes the place of the features
                    for total, part_grad in zip(group_grads[i], itertools.chain(*part_grads)):
                        total += part_grad
                    sums[i] = values if sums[i] is None else tuple(map(torch.add, sums[i], values))
                    counts.append(count)
                if counts[0] is not None:
                    agreeing.append(sum(counts).view(-1, size)[:, :valid])
        # the terms' sums over all chunks, joined over the groups of decoders
        by_term = [torch.cat(parts) for parts in zip(*sums)]
        loss = plan.scale * sum(term.factor * value.sum() for term, value in zip(terms, by_term))
        ctx.gradients = (projected, *grads)
        ctx.scale = plan.scale
        agreement_map = torch.cat(agreeing, -1) if agreeing else None
        ctx.mark_non_differentiable(*by_term, *filter(lambda t: t is not None, [agreement_map]))
        return loss, agreement_map, *by_term

    @staticmethod
    def backward(ctx: Any, grad_total: Tensor, *_: Tensor) -> tuple:
        """Scales the gradients of the forward pass in place."""
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
        return None, *gradients


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
    # the native kernel if it has these losses, else PyTorch
    scale = _common_scale(terms)
    distances = tuple(term.distance for term in terms)
    step = ChunkStep(distances, chain.final_activation, count_agreement)
    kernel = native_chain(projected, chain, chunking) if _kernel_knows(terms) else None
    run: Callable
    if kernel is not None:
        values_per_position = targets.seg_logits.shape[1] * targets.stride**2
        together = len(projected)
        size = chunking.native_size(projected, values_per_position, kernel.tile)
        run = partial(native_step, step, kernel)
    else:
        divisible = all(term.decoders is None for term in terms)
        together, size = chunking.shape(projected, chain.values_per_position, divisible)
        run = chunking.prepare(step, projected.device)

    plan = _ChunkPlan(run, _cut_targets(targets, terms, scale, size), scale.float(), together, size)
    loss, agreeing, *sums = _LossFromChunks.apply(plan, projected, *chain.weights, *chain.biases)
    values = [value * term.scale.to(value) for value, term in zip(sums, terms)]
    return loss, values, None if agreeing is None else agreeing / len(projected)


def _common_scale(terms: Sequence[PixelTerm]) -> Tensor:
    """Computes a factor to take out of the loss so that float16 can hold the chunks' gradients.

    It follows the largest ω · scale. Terms of few pixels, or none, may have larger gradients and
    count less here: they must not push those of the others below what float16 can hold.
    """
    factors = [
        term.loss_weight * term.scale * (term.pixel_weight.sum() / FLOAT16_SUMMANDS).clamp(max=1)
        for term in terms
    ]
    scale = torch.stack(factors).max() / FLOAT16_GRADIENT
    return scale.where(scale > 0, 1)  # all ω may be 0, or no pixel count


def _cut_targets(
    targets: PixelTargets, terms: Sequence[PixelTerm], scale: Tensor, size: int
) -> Iterator[tuple[Tensor, list[TermTensors]]]:
    """Cuts the main decoder's logits and the tensors of every term into chunks of positions."""

    def cut(pixels: Tensor | None) -> Iterator[Tensor | None]:
        if pixels is None:
            return itertools.repeat(None)
        return subpixel_chunks(pixels, targets.stride, size, targets.positions)

    def tensors_of(term: PixelTerm) -> Iterator[TermTensors]:
        factor = (term.loss_weight * term.scale / scale).to(term.pixel_weight.dtype)
        for labels, weight in zip(cut(term.labels), cut(term.pixel_weight)):
            yield TermTensors(labels, weight, factor, term.decoders)

    for main_logits, *of_terms in zip(cut(targets.seg_logits), *map(tensors_of, terms)):
        yield main_logits, of_terms
