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

# Bytes of the largest temporary, one chunk's logits. On a CPU a chunk that nearly stays in the
# second-level caches is worth more than few chunks; on a GPU few launches are.
CPU_MEMORY_BUDGET = 8 * 2**20
GPU_MEMORY_BUDGET = 512 * 2**20


def split_positions(maps: Tensor, size: int) -> Tensor:
    """Cuts the last axis into chunks; the last chunk is filled up with zeros.

    Args:
        maps: `(..., P)`.
        size: p, positions per chunk.

    Returns:
        `(ceil(P / p), ..., p)`, contiguous, never the memory of `maps`.
    """
    num_chunks, rest = divmod(maps.shape[-1], size)
    chunks = maps.new_empty(num_chunks + (rest > 0), *maps.shape[:-1], size)
    full = maps[..., :num_chunks * size]
    chunks[:num_chunks] = full.unflatten(-1, (num_chunks, size)).movedim(-2, 0)
    if rest:
        chunks[-1] = F.pad(maps[..., num_chunks * size:], (0, size - rest))
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


class SplitPositions(torch.autograd.Function):
    """`split_positions` under autograd, without a copy more than it takes."""

    @staticmethod
    def forward(ctx: Any, maps: Tensor, size: int) -> Tensor:
        """See `split_positions`."""
        ctx.num_positions = maps.shape[-1]
        return split_positions(maps, size)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """Joins the gradients of the chunks."""
        return join_positions(grad, ctx.num_positions), None


class Chunking:
    """How large a chunk is, and whether chunk functions are compiled.

    Args:
        memory_budget: Bytes that the largest temporary may take; None picks by device.
        compile: 'auto' compiles where a compiler is found, True always, False never.
    """

    def __init__(self, memory_budget: int | None = None, compile: bool | str = 'auto') -> None:
        self.memory_budget = memory_budget
        self.compile = compile

    def size(self, projected: Tensor, num_decoders: int, num_classes: int, stride: int) -> int:
        """Positions per chunk: the power of two whose logits fill the budget, at least one.

        Args:
            projected: Any tensor on the device.
            num_decoders: K.
            num_classes: C.
            stride: s.

        Returns:
            p.
        """
        default = GPU_MEMORY_BUDGET if projected.is_cuda else CPU_MEMORY_BUDGET
        budget = default if self.memory_budget is None else self.memory_budget
        fits = budget // (num_decoders * num_classes * stride**2 * 4)
        return 1 << max(fits.bit_length() - 1, 0)

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
