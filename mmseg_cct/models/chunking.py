"""Evaluating a function of many feature positions a fixed number of positions at a time.

All chunks have one shape, the last one padded, and the shape depends on neither image size nor
batch size, so a compiled function compiles once.
"""

import shutil
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.logging import print_log
from torch import Tensor
from torch.autograd.function import once_differentiable

# Bytes of the largest temporary, one chunk's logits. On a CPU a chunk that nearly stays in the
# second-level caches is worth more than few chunks; on a GPU few launches are.
CPU_MEMORY_BUDGET = 8 * 2**20
GPU_MEMORY_BUDGET = 512 * 2**20
# Every chunk reads the weights of its decoders. Where many decoders or classes would leave fewer
# positions than this, a chunk takes a part of the decoders.
MIN_POSITIONS = 32


def num_chunks(num_positions: int, size: int) -> int:
    """How many chunks of `size` positions hold `num_positions`."""
    return -(-num_positions // size)


def fill_chunks(chunks: Tensor, maps: Tensor) -> None:
    """Cuts the last axis into chunks; the last chunk is filled up with zeros.

    Args:
        chunks: `(ceil(P / p), ..., p)`, written to.
        maps: `(..., P)`.
    """
    size = chunks.shape[-1]
    full, rest = divmod(maps.shape[-1], size)
    chunks[:full] = maps[..., :full * size].unflatten(-1, (full, size)).movedim(-2, 0)
    if rest:
        chunks[-1] = F.pad(maps[..., full * size:], (0, size - rest))


def split_positions(maps: Tensor, size: int) -> Tensor:
    """`fill_chunks` into new memory.

    Args:
        maps: `(..., P)`.
        size: p, positions per chunk.

    Returns:
        `(ceil(P / p), ..., p)`, contiguous.
    """
    chunks = maps.new_empty(num_chunks(maps.shape[-1], size), *maps.shape[:-1], size)
    fill_chunks(chunks, maps)
    return chunks


def join_positions(chunks: Tensor, num_positions: int) -> Tensor:
    """Undoes `split_positions`.

    Args:
        chunks: `(n, ..., p)`.
        num_positions: P.

    Returns:
        `(..., P)`.
    """
    return chunks.movedim(0, -2).flatten(-2)[..., :num_positions]


class CollectChunks(torch.autograd.Function):
    """The projected features of all perturbations as one tensor of chunks: one copy each way."""

    @staticmethod
    def forward(ctx: Any, size: int, dtype: torch.dtype, *projected: Tensor) -> Tensor:
        """`(k, N, C, S)` of each perturbation to `(n, K, C, p)` of the given size p and type."""
        _, num_images, num_classes, num_positions = projected[0].shape
        ctx.num_images, ctx.num_positions = num_images, num_images * num_positions
        ctx.parts = [(len(part), part.dtype) for part in projected]
        chunks = projected[0].new_empty(
            num_chunks(ctx.num_positions, size),
            sum(map(len, projected)), num_classes, size, dtype=dtype)
        for view, part in zip(chunks.split([len(part) for part in projected], 1), projected):
            fill_chunks(view, part.transpose(1, 2).flatten(2))
        return chunks

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple:
        """Gives each perturbation its gradient."""
        views = grad.split([length for length, _ in ctx.parts], 1)
        return None, None, *(
            join_positions(view, ctx.num_positions).unflatten(2, (ctx.num_images, -1))
            .transpose(1, 2).to(dtype) for view, (_, dtype) in zip(views, ctx.parts))


class Chunking:
    """How large a chunk is, and whether chunk functions are compiled.

    Args:
        memory_budget: Bytes that the largest temporary may take; None picks by device.
        compile: 'auto' compiles where a compiler is found, True always, False never.
    """

    def __init__(self, memory_budget: int | None = None, compile: bool | str = 'auto') -> None:
        self.memory_budget = memory_budget
        self.compile = compile

    def group(self, features: Tensor, num_decoders: int, num_classes: int, stride: int) -> int:
        """Decoders per chunk: as many as leave room for `MIN_POSITIONS`.

        Args:
            features: Any tensor on the device.
            num_decoders: K.
            num_classes: C.
            stride: s.

        Returns:
            A divisor of K, so that all chunks have one shape.
        """
        fits = self._num_logits(features) // (MIN_POSITIONS * num_classes * stride**2)
        return max((k for k in range(1, min(fits, num_decoders) + 1) if num_decoders % k == 0),
                   default=1)

    def size(self, features: Tensor, num_decoders: int, num_classes: int, stride: int) -> int:
        """Positions per chunk: the power of two whose logits fill the budget, at least one.

        Args:
            features: Any tensor on the device.
            num_decoders: How many decoders a chunk takes.
            num_classes: C.
            stride: s.

        Returns:
            p.
        """
        fits = self._num_logits(features) // (num_decoders * num_classes * stride**2)
        return 1 << max(fits.bit_length() - 1, 0)

    def _num_logits(self, features: Tensor) -> int:
        """How many float32 logits fill the budget."""
        default = GPU_MEMORY_BUDGET if features.is_cuda else CPU_MEMORY_BUDGET
        return (default if self.memory_budget is None else self.memory_budget) // 4

    def prepare(self, function: Callable, device: torch.device) -> Callable:
        """The function, compiled if that is asked for and can be done.

        Args:
            function: A pure, hashable function of tensors.
            device: Where it is going to run.

        Returns:
            The function or its compiled twin, the same one at every call.
        """
        if self.compile == 'auto':
            return _compiled_if_possible(function) if _compiler_found(device.type) else function
        return _compiled(function) if self.compile else function


@cache
def _log_once(message: str) -> None:
    print_log(message, logger='current')


@cache
def _compiled(function: Callable) -> Callable:
    _log_once(
        'PerturbedDecoderBank: the auxiliary decoders are compiled in the first iteration (half a '
        'minute; later runs find them in the cache)')
    return torch.compile(function, dynamic=False, fullgraph=True)


@cache
def _compiled_if_possible(function: Callable) -> Callable:
    """The compiled function, which turns into the plain one if its first call fails."""
    chosen = None

    def run(*args: Any) -> Any:
        nonlocal chosen
        if chosen is not None:
            return chosen(*args)
        try:
            result = _compiled(function)(*args)
            chosen = _compiled(function)
        except Exception as error:  # whatever a compiler may fail with; a real error comes again
            result = function(*args)
            chosen = function
            reason = str(error).strip().splitlines() or [type(error).__name__]
            _log_once(
                'PerturbedDecoderBank: torch.compile failed, the auxiliary decoders run uncompiled '
                f'(the same result, about half as fast): {reason[0]}')
        return result

    return run


@cache
def _compiler_found(device_type: str) -> bool:
    """Whether torch.compile has the compiler it needs; says so in the log, once, if it has not."""
    if device_type == 'cuda':
        found = torch.cuda.get_device_capability() >= (7, 0)
        try:
            import triton  # noqa: F401
        except ImportError:
            found = False
    else:
        found = any(shutil.which(name) for name in ('g++', 'clang++'))
    if not found:
        _log_once(
            f'PerturbedDecoderBank: no compiler for {device_type} found, the auxiliary decoders '
            'run uncompiled (the same result, about half as fast)')
    return found
