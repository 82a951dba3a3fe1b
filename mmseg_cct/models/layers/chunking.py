"""Chunks of feature positions: their size, and the compilation of what runs on them.

All chunks have one shape, the last one padded. If there are several, the shape depends on neither
image size nor batch size, so a function compiles once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.logging import print_log
from torch import Tensor

from mmseg_cct.utils.text import error_line

# Bytes of the largest temporary, in general one chunk's logits. A CPU gains most from chunks that
# nearly fit into its second-level caches, a GPU from few kernel launches.
CPU_MEMORY_BUDGET = 8 * 2**20
GPU_MEMORY_BUDGET = 512 * 2**20
# Every chunk reads the weights of its decoders. Where many decoders or classes leave room for fewer
# positions than this, a chunk takes only some of the decoders.
MIN_POSITIONS = 32
_UNCOMPILED = 'run uncompiled (the same result, about half as fast)'


def split_positions(maps: Tensor, size: int) -> list[Tensor]:
    """Cuts `(..., P)` into ceil(P / p) contiguous `(..., p)`, the last one padded with zeros."""
    return [fill_up(chunk, size) for chunk in maps.split(size, -1)]


def fill_up(chunk: Tensor, size: int) -> Tensor:
    """Pads `(..., p)` with zeros to contiguous `(..., size)`; what is that already stays."""
    missing = size - chunk.shape[-1]
    return (F.pad(chunk, (0, missing)) if missing else chunk).contiguous()


def join(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Concatenates tensors; a single one is not copied."""
    return torch.cat(parts, dim) if len(parts) > 1 else parts[0]


@dataclass
class Chunking:
    """Chunk size and compilation.

    `memory_budget` is the size of the largest temporary in bytes; None picks it by device.
    `compile` is 'auto' for `native_chain` on a CPU and the faster of `triton_chain` and
    `torch.compile` on a GPU, each where it is possible; True for `torch.compile` always, False for
    none of them.
    """

    memory_budget: int | None = None
    compile: bool | str = 'auto'

    def shape(
        self, projected: Tensor, values_per_position: int, divisible: bool = False
    ) -> tuple[int, int]:
        """Decoders and positions per chunk of projected features `(K, B, P)`.

        `values_per_position` is the size of the largest activation of a decoder at a position: its
        s²C logits, or the level before, s²B/4, if that is larger. The number of decoders is K or,
        if divisible, its largest divisor that leaves room for `MIN_POSITIONS`. The number of
        positions is the largest power of two whose activations fit into the budget, at least 1 and
        no more than P needs.
        """
        num_decoders, width, num_positions = projected.shape
        largest = max(values_per_position, width)
        fits = self._num_values(projected) // largest  # decoders × positions
        group_size = num_decoders
        if divisible:
            divisors = (k for k in range(1, num_decoders + 1) if num_decoders % k == 0)
            group_size = max((k for k in divisors if k * MIN_POSITIONS <= fits), default=1)
        size = 1 << max((fits // group_size).bit_length() - 1, 0)
        return group_size, min(size, 1 << (num_positions - 1).bit_length())

    def native_size(self, projected: Tensor, values_per_position: int, tile: int) -> int:
        """Positions per chunk of the native kernel, which holds no predictions.

        Features are `(K, B, P)`, the main prediction has `values_per_position` s²C, and a thread
        processes `tile` positions at once. Features and targets fit into the budget unless one tile
        per thread needs more.
        """
        num_decoders, width, _ = projected.shape
        fits = self._num_values(projected) // max(values_per_position, num_decoders * width)
        return self.even_size(projected, max(fits, tile * torch.get_num_threads()), tile)

    def even_size(self, projected: Tensor, most: int, tile: int) -> int:
        """Positions per chunk of `(K, B, P)`, a multiple of a tile, where any size will do.

        Chunks are about equally full, so they need little padding.
        """
        num_positions = projected.shape[-1]
        chunks = -(-num_positions // most)
        return -(-num_positions // (chunks * tile)) * tile

    def copies(self, features: Tensor) -> int:
        """How many perturbed copies of z are made at once: as many as fit on a GPU, one on a CPU.

        A GPU gains from few kernel launches, a CPU from what its caches hold.
        """
        return max(self._num_values(features) // features.numel(), 1) if features.is_cuda else 1

    def _num_values(self, projected: Tensor) -> int:
        default = GPU_MEMORY_BUDGET if projected.is_cuda else CPU_MEMORY_BUDGET
        return (default if self.memory_budget is None else self.memory_budget) // 4

    def prepare(self, function: Callable, device: torch.device) -> Callable:
        """Compiles a pure, hashable function of tensors as `compile` says.

        Returns the function or its compiled version, the same object at every call.
        """
        if not self.compile:
            return function
        if self.compile != 'auto':
            return _compiled(function, fall_back=False)
        # on a CPU 20 seconds of compiling are more than most trainings win back
        if device.type == 'cpu':
            reason = 'as the native kernel lacks their losses or is not possible'
            remedy = 'auxiliary_head.compile=True compiles them, which pays in a long training'
            _log_once(f'run uncompiled, {reason} ({remedy})')
            return function
        return _compiled(function, fall_back=True) if triton_found() else function


@cache
def _log_once(message: str) -> None:
    print_log(f'PerturbedDecoderBank: the auxiliary decoders {message}', logger='current')


@cache
def _compiled(function: Callable, fall_back: bool) -> Callable:
    """Compiles a function for each shape and type of its first argument.

    With `fall_back` the plain function runs at shapes that fail to compile.
    """
    cached = 'half a minute; later runs find them in the cache'
    _log_once(f'are compiled in the first iteration ({cached})')
    failed = set()

    @cache
    def compiled(shape: torch.Size, dtype: torch.dtype) -> Callable:
        def call(*args: Any) -> Any:
            return function(*args)

        # torch.compile compiles a code object at most eight times, and all calls here share one
        copied = FunctionType(call.__code__.replace(), call.__globals__, closure=call.__closure__)
        return torch.compile(copied, dynamic=False, fullgraph=True)

    def run(first: Tensor, *args: Any) -> Any:
        shape = first.shape, first.dtype
        if shape not in failed:
            try:
                return compiled(*shape)(first, *args)
            except torch.cuda.OutOfMemoryError:
                raise  # uncompiled, it takes even more memory
            except Exception as error:  # of any kind; the function's own errors recur uncompiled
                if not fall_back:
                    raise
                failed.add(shape)
                _log_once(f'{_UNCOMPILED}: torch.compile failed, {error_line(error, 200)}')
        return function(first, *args)

    return run


@cache
def triton_found() -> bool:
    """Whether torch.compile has what it needs on a GPU; logs a line if not."""
    is_usable = find_spec('triton') is not None and torch.cuda.get_device_capability() >= (7, 0)
    if not is_usable:
        _log_once(f'{_UNCOMPILED}: no triton, or a GPU too old for it')
    return is_usable
