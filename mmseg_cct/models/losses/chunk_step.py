"""The losses of the auxiliary decoders at one chunk of positions, and all their gradients.

Shapes as in `chunked_loss.py`.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mmseg_cct.models.layers.chunking import Chunking, fill_up, triton_found
from mmseg_cct.models.layers.kernel_trial import wins_trial
from mmseg_cct.models.layers.native_chain import native_chain
from mmseg_cct.models.layers.stacked_decoders import (
    Chain,
    as_seg_logits,
    decode_backward,
    decode_levels,
)

from .auxiliary import kl_distance, label_cross_entropy, mse_distance
from .pixel_term import Distance, PixelTerm

# Positions of the chunk at which the Triton kernel is compared with PyTorch, at most.
TRIAL_POSITIONS = 256
TRITON_TYPES = (torch.float32, torch.float16, torch.bfloat16)
# A program of the Triton kernel holds the gradient of its weights in registers; one more channel is
# the bias.
TRITON_CHANNELS = 63


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
        # distances take at least float32; the products may be in 16 bits
        loss_dtype = torch.promote_types(main_logits.dtype, torch.float32)
        probabilities = main_logits.softmax(0, dtype=loss_dtype)
        chain = Chain(weights, biases, self.final_activation)
        outputs = decode_levels(projected, chain)
        predicted = as_seg_logits(outputs[-1], chain)
        predicted = predicted.to(torch.promote_types(predicted.dtype, torch.float32))

        agreeing = None
        if self.count_agreement:
            # the logit of the main class is compared with the maximum, which a compiled chunk
            # computes for its softmax anyway: an argmax of all logits needs a loop of its own
            # (on a CPU `max` finds the main class five times as fast as `argmax`)
            main_class = probabilities.max(0, keepdim=True).indices
            at_main_class = predicted.gather(1, main_class.expand(len(predicted), 1, -1, -1))
            agrees = at_main_class.squeeze(1) == predicted.amax(1)
            agreeing = agrees.to(predicted.dtype).sum(0)

        def total(seg_logits: Tensor) -> Any:  # before torch 2.7, dynamo reads no `tuple[...]`
            values = []
            for distance, term in zip(self.distances, terms):
                chosen_logits = seg_logits if term.decoders is None else seg_logits[term.decoders]
                target = probabilities if term.labels is None else term.labels
                values.append((distance(chosen_logits, target) * term.pixel_weight).sum((1, 2)))
            weighted = [term.factor * value.sum() for value, term in zip(values, terms)]
            return sum(weighted), tuple(values)

        grad, values = torch.func.grad(total, has_aux=True)(predicted)
        gradients = decode_backward(outputs, chain, grad.to(projected.dtype))
        return gradients, values, agreeing


def kernel_step(
    step: ChunkStep,
    kernel: Any,
    projected: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    main_logits: Tensor,
    terms: Sequence[TermTensors],
) -> tuple[tuple, tuple[Tensor, ...], Tensor | None]:
    """Computes the same as a `ChunkStep` by a `NativeChain` or a `TritonChain`."""
    chain = Chain(weights, biases, step.final_activation)
    # the distance to the main prediction, then that to labels
    slots = [int(term.labels is not None) for term in terms]
    maps: list[Tensor | None] = [None, None, None]
    factors = [terms[0].factor] * 2
    for slot, term in zip(slots, terms):
        maps[slot], factors[slot] = term.pixel_weight[0], term.factor
        if term.labels is not None:
            maps[2] = term.labels[0]
    gradients, values, agreeing = kernel.losses(projected, chain, main_logits, maps, factors)
    agreeing = agreeing.view_as(main_logits[0]) if step.count_agreement else None
    return gradients, tuple(values[slot].float() for slot in slots), agreeing


class ChunkPlan(NamedTuple):
    """What computes a chunk, and how large the chunks are."""

    compute: Callable  # a `ChunkStep`, compiled or not, or a `kernel_step`
    num_decoders: int  # of a chunk, a divisor of K
    num_positions: int  # p, those of a chunk


def plan_chunks(
    step: ChunkStep,
    projected: Tensor,
    chain: Chain,
    terms: Sequence[PixelTerm],
    chunking: Chunking,
    stride: int,
    cut_targets: Callable[[int], Iterator],
) -> ChunkPlan:
    """Plans chunks for what computes a `ChunkStep` fastest.

    That is the native kernel on a CPU and, on a GPU, the Triton kernel if it wins a trial at the
    first chunk, where these have the terms; else `torch.compile` where it is possible, or PyTorch.
    `cut_targets` cuts the targets into chunks of so many positions.
    """
    has_mse = _kernels_have(terms, (mse_distance, label_cross_entropy))
    has_kl = _kernels_have(terms, (kl_distance, label_cross_entropy))
    native = native_chain(projected, chain, chunking) if has_mse else None
    if native is not None:
        values_per_position = stride**2 * chain.weights[-1].shape[1] // 4
        num_positions = chunking.native_size(projected, values_per_position, native.tile)
        return ChunkPlan(partial(kernel_step, step, native), len(projected), num_positions)

    # L_pw compares decoders, so a chunk has to have all of them
    divisible = all(term.decoders is None for term in terms)
    shape = chunking.shape(projected, chain.values_per_position, divisible)
    torch_plan = ChunkPlan(chunking.prepare(step, projected.device), *shape)
    if not (has_mse or has_kl) or not _triton_fits(projected, chain, chunking):
        return torch_plan

    from mmseg_cct.models.layers.triton_chain import TritonChain  # there may be no triton

    triton_step = partial(kernel_step, step, TritonChain(kl=not has_mse))
    if not _wins_first_chunk(triton_step, step, torch_plan, projected, chain, cut_targets):
        return torch_plan
    # it writes no logits: its largest temporary is what the last level reads, and the gradient
    # takes its place, so that a chunk of twice the positions needs no more memory
    values_per_position = chain.weights[-1].shape[-1] * stride**2 // 8
    num_decoders, most = chunking.shape(projected, values_per_position, divisible)
    return ChunkPlan(triton_step, num_decoders, chunking.even_size(projected, most, tile=16))


def _wins_first_chunk(
    kernel: Callable,
    step: ChunkStep,
    plan: ChunkPlan,
    projected: Tensor,
    chain: Chain,
    cut_targets: Callable[[int], Iterator],
) -> bool:
    """Whether a kernel is right, and faster than a plan at the first chunk."""

    def first_chunk(num_positions: int) -> tuple:
        features = projected.detach()[: plan.num_decoders, :, :num_positions]
        decoders = chain.map(Tensor.detach).select(slice(plan.num_decoders))
        targets = next(cut_targets(num_positions))
        return fill_up(features, num_positions), decoders.weights, decoders.biases, *targets

    sizes = min(plan.num_positions, TRIAL_POSITIONS), plan.num_positions
    shapes = tuple(weight.shape for weight in chain.weights)
    key = (step, projected.device, projected.dtype, shapes, *plan[1:])
    return wins_trial(key, kernel, plan.compute, step, lambda: map(first_chunk, sizes))


def _kernels_have(terms: Sequence[PixelTerm], distances: Collection[Distance]) -> bool:
    """Whether a kernel of these distances has the terms: one per target, on all decoders."""
    is_unlabeled = [term.labels is None for term in terms]
    one_per_target = len(set(is_unlabeled)) == len(terms)
    return one_per_target and all(t.decoders is None and t.distance in distances for t in terms)


def _triton_fits(projected: Tensor, chain: Chain, chunking: Chunking) -> bool:
    """Whether the Triton kernel may run the decoders of projected features `(K, B, P)`."""
    is_possible = chunking.compile == 'auto' and projected.is_cuda and triton_found()
    if not is_possible or not chain.weights or projected.dtype not in TRITON_TYPES:
        return False
    _, rows, width = chain.weights[-1].shape
    # TensorFloat-32 begins with compute capability 8.0
    capable = torch.cuda.get_device_capability(projected.device) >= (8, 0)
    return capable and max(rows // 4, width) <= TRITON_CHANNELS
