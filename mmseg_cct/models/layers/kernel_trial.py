"""Whether a kernel replaces what runs today: it has to be right and faster, measured once."""

import time
from collections.abc import Callable, Hashable, Iterable

import torch
from mmengine.logging import print_log
from torch.utils._pytree import tree_flatten

from mmseg_cct.utils.text import error_line

# Largest difference of a tensor's norm; a float32 product may run in TensorFloat-32.
TOLERANCES = {torch.float32: 1e-2, torch.float16: 2e-2, torch.bfloat16: 1e-1}

_results: dict[Hashable, bool] = {}


@torch.no_grad()
def wins_trial(
    key: Hashable,
    kernel: Callable,
    current: Callable,
    reference: Callable,
    chunks: Callable[[], Iterable[tuple]],
) -> bool:
    """Compares a kernel with the reference on a small chunk, and in time with what runs today.

    `chunks` gives the arguments of both chunks, the first of them a tensor. The result is kept
    under the key and logged. Nothing that the kernel does ends a training. Where torch is asked to
    be deterministic, time decides nothing: a kernel that is right wins.
    """
    if key in _results:
        return _results[key]
    wins, reason = False, 'as runs have to repeat'
    try:
        small, large = chunks()
        with torch.autocast(small[0].device.type, enabled=False):
            error = _difference(kernel(*small), reference(*small))
            tolerance = TOLERANCES[small[0].dtype]
            if not error <= tolerance:  # NaN is none
                reason = f'its gradients are off by {error:.1g}'
            elif torch.are_deterministic_algorithms_enabled():
                wins = True
            else:
                kernel_ms, current_ms = (1e3 * _seconds(step, large) for step in (kernel, current))
                wins = kernel_ms < current_ms
                reason = f'{kernel_ms:.2f} ms a chunk, {current_ms:.2f} ms without it'
    except Exception as problem:
        reason = error_line(problem)
    _results[key] = wins
    verb = 'run' if wins else 'do not run'
    line = f'PerturbedDecoderBank: the auxiliary decoders {verb} by the Triton kernel ({reason})'
    print_log(line, logger='current')
    return wins


def _difference(actual: tuple, expected: tuple) -> float:
    """Largest relative difference of the norms of two results' tensors."""
    # without the agreement, which differs where 16 bits round to ties
    pairs = zip(*(tree_flatten(result[:2])[0] for result in (actual, expected)))
    floats = ((a.float(), e.float()) for a, e in pairs)
    return max(float((a - e).norm() / e.norm().clamp(min=1e-12)) for a, e in floats)


def _seconds(step: Callable, chunk: tuple) -> float:
    """Time of the fastest of three calls, after one that compiles."""
    times = []
    for _ in range(4):
        begin = time.perf_counter()
        step(*chunk)
        if chunk[0].is_cuda:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return min(times[1:])
