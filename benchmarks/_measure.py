"""Time, peak memory and a machine's ceilings, measured the same way in every benchmark.

Time: steps take turns, so that a disturbance meets all of them. On a GPU CUDA events around the
step, on a CPU the wall clock. The process's CPU time (all threads) is taken beside it: where other
jobs run it is the steadier of the two, most of all with one thread (several spin while they wait
for each other). Ratios are those of each turn: their median and, in brackets, their quartiles. A
turn in which other processes took the cores that the threads need is taken again (`_quiet`).

Peak memory of a step: what it needs on top of what lives when it begins (inputs and parameters).
On a GPU the allocator's own count. On a CPU the process's resident pages: freed heap is handed back
first (`malloc_trim`), the kernel's high-water mark is reset (5 into /proc/self/clear_refs) and read
after the step (VmHWM). What a compiler took while it compiled is then not counted.
"""

import ctypes
import datetime
import gc
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _quiet import refuse_turns, watch

Step = Callable[[], object]

Times = dict[str, Any]

MIB = 2**20
MIN_TURNS = 3


def say(message: str) -> None:
    """Prints a line of progress at once.

    Args:
        message: The line.
    """
    print(message, flush=True)


def set_precision(dtype: str) -> None:
    """Allows TF32 where it is asked for, and nowhere else.

    Args:
        dtype: 'float32', 'tf32' or 'bfloat16'.
    """
    torch.backends.cuda.matmul.allow_tf32 = dtype == 'tf32'
    torch.backends.cudnn.allow_tf32 = dtype == 'tf32'


def autocast(device: str, dtype: str) -> AbstractContextManager:
    """Mixed precision for 'bfloat16', else nothing.

    Args:
        device: 'cpu' or 'cuda'.
        dtype: 'float32', 'tf32' or 'bfloat16'.

    Returns:
        A context for the forward pass.
    """
    return torch.autocast(device, torch.bfloat16) if dtype == 'bfloat16' else nullcontext()


def machine(device: str) -> dict[str, str]:
    """What the figures were measured on.

    Args:
        device: 'cpu' or 'cuda'.

    Returns:
        Description by name.
    """
    cpu = platform.processor() or platform.machine()
    info = Path('/proc/cpuinfo')
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith('model name')]
        cpu = names[0].split(':', 1)[1].strip() if names else cpu
    found = dict(
        date=datetime.date.today().isoformat(),
        cpu=f'{cpu}, {os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}',
        threads=str(torch.get_num_threads()),
        torch=torch.__version__,
        python=platform.python_version(),
    )
    found['cores of this process'] = str(len(watch().cores))
    if device == 'cuda':
        found['gpu'] = torch.cuda.get_device_name()
    return found


def seconds(value: float | None) -> str:
    """Formats a time with three digits.

    Args:
        value: In seconds.

    Returns:
        As '123 ms' or '1.23 s', with ~ before it where it was taken on a busy machine; a dash for
        None.
    """
    if value is None:
        return '–'
    if value >= 1:
        return _marked(f'{value:.2f} s')
    return _marked(f'{value * 1e3:.3g} ms')


def _marked(figure: str) -> str:
    return f'~{figure}' if watch().noisy else figure


def mebibytes(value: float | None) -> str:
    """Formats an amount of memory.

    Args:
        value: In bytes.

    Returns:
        As '123 MiB'; a dash for None.
    """
    return '–' if value is None else f'{value / MIB:.0f} MiB'


def ratio(numerator: float | None, denominator: float | None) -> str:
    """Formats a ratio.

    Args:
        numerator: Above.
        denominator: Below.

    Returns:
        As '1.23×'; a dash where one is missing.
    """
    if numerator is None or not denominator:
        return '–'
    return f'{numerator / denominator:.3g}×'


def quartiles(above: Times, below: Times, key: str = 'times') -> tuple[float, float, float]:
    """Ratios of two steps that took turns, turn by turn.

    Args:
        above: The one step, from `alternate`.
        below: The other, of the same call.
        key: 'times' or 'cpu_times'.

    Returns:
        First quartile, median and third quartile.
    """
    first, median, third = np.quantile(np.divide(above[key], below[key]), (0.25, 0.5, 0.75))
    return float(first), float(median), float(third)


def paired_ratio(above: Times, below: Times, key: str = 'times') -> str:
    """Formats the ratio of two steps with its spread.

    Args:
        above: The one step, from `alternate`.
        below: The other, of the same call.
        key: 'times' or 'cpu_times'.

    Returns:
        As '1.23× (1.20–1.27)', with ~ before it where it was taken on a busy machine.
    """
    if above is below:
        return '1×'
    first, median, third = quartiles(above, below, key)
    return _marked(f'{median:.3g}× ({first:.3g}–{third:.3g})')


def once(step: Step, device: str) -> float:
    """Runs a step.

    Args:
        step: What to run.
        device: 'cpu' or 'cuda'.

    Returns:
        Its time in seconds.
    """
    if device == 'cuda':
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        step()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 1e3
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def alternate(
    steps: dict[str, Step],
    repeats: int,
    device: str,
    warm_up: int = 1,
    limit: float = 120.0,
) -> dict[str, Times]:
    """Times steps by turns.

    Args:
        steps: By name.
        repeats: Times that each is measured.
        device: 'cpu' or 'cuda'.
        warm_up: Runs after the first one that are not counted.
        limit: Seconds after which no further turn begins, once there are three.

    Returns:
        For each step, in seconds: `times` and `cpu_times` of each turn, `median`, `min` and `max`
        of the former, `cpu`, the median of the latter, and `first` (the first call, which
        compiles).

    Raises:
        SystemExit: Other processes disturb too many turns.
    """
    first = {name: _first_call(step, device) for name, step in steps.items()}
    for step in steps.values():
        for _ in range(warm_up):
            step()
    times: dict[str, list[float]] = {name: [] for name in steps}
    busy: dict[str, list[float]] = {name: [] for name in steps}
    begin, turns, discarded = time.perf_counter(), 0, 0
    while turns < repeats and (turns < MIN_TURNS or time.perf_counter() - begin < limit):
        start = watch().read()
        turn = {name: _reading(step, device) for name, step in steps.items()}
        if watch().disturbed(start):
            if not watch().allow_busy:
                discarded += 1
                if discarded > max(repeats, MIN_TURNS):
                    refuse_turns(discarded)
                continue
            watch().noisy = True
        turns += 1
        for name, (wall, cpu) in turn.items():
            times[name].append(wall)
            busy[name].append(cpu)
    return {
        name: dict(
            first=first[name],
            times=t,
            cpu_times=busy[name],
            median=statistics.median(t),
            min=min(t),
            max=max(t),
            cpu=statistics.median(busy[name]),
        )
        for name, t in times.items()
    }


def _reading(step: Step, device: str) -> tuple[float, float]:
    begin = time.process_time()
    wall = once(step, device)
    return wall, time.process_time() - begin


def _first_call(step: Step, device: str) -> float:
    begin = time.perf_counter()
    step()
    if device == 'cuda':
        torch.cuda.synchronize()
    return time.perf_counter() - begin


def step_peak(step: Step, device: str) -> float | None:
    """Peak memory of a step on top of what lives when it begins.

    Args:
        step: What to run; it has run before, so it is compiled.
        device: 'cpu' or 'cuda'.

    Returns:
        Bytes; None where the system does not tell.
    """
    gc.collect()
    if device == 'cuda':
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    try:
        ctypes.CDLL('libc.so.6').malloc_trim(0)
        Path('/proc/self/clear_refs').write_text('5')
    except OSError:
        return None
    before = _resident('VmRSS')
    step()
    return max(_resident('VmHWM') - before, 0)


def process_peak() -> int:
    """Peak resident memory of this process since it began.

    Returns:
        Bytes.
    """
    try:
        return _resident('VmHWM')  # ru_maxrss of a child begins at its parent's
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if platform.system() == 'Darwin' else peak * 1024


def _resident(key: str) -> int:
    for line in Path('/proc/self/status').read_text().splitlines():
        if line.startswith(key + ':'):
            return int(line.split()[1]) * 1024
    raise OSError(f'/proc/self/status has no {key}')


def count_kernels(step: Step) -> tuple[int, int]:
    """Counts what a step launches on a GPU.

    Args:
        step: What to run; warmed up.

    Returns:
        Number of kernels and number of copies and fills.
    """
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=activities) as profile:
        step()
        torch.cuda.synchronize()
    names = [
        event.name
        for event in profile.events()
        if event.device_type == torch.autograd.DeviceType.CUDA
        and not getattr(event, 'is_user_annotation', False)
    ]
    copies = sum(name.startswith(('Memcpy', 'Memset')) for name in names)
    return len(names) - copies, copies


def matmul_rate(batch: int, rows: int, inner: int, columns: int, device: str, dtype: str) -> float:
    """Rate of a batched matrix product, `(batch, rows, inner) @ (batch, inner, columns)`.

    Args:
        batch: Number of products.
        rows: Rows of the result.
        inner: Length of the sums.
        columns: Columns of the result.
        device: 'cpu' or 'cuda'.
        dtype: 'float32', 'tf32' or 'bfloat16'.

    Returns:
        FLOP per second.
    """
    kind = torch.bfloat16 if dtype == 'bfloat16' else torch.float32
    a = torch.randn(batch, rows, inner, device=device, dtype=kind)
    b = torch.randn(batch, inner, columns, device=device, dtype=kind)
    out = torch.empty(batch, rows, columns, device=device, dtype=kind)
    return 2 * batch * rows * inner * columns / _typical(lambda: torch.bmm(a, b, out=out), device)


def copy_bandwidth(device: str, size: int = 256 * MIB) -> float:
    """Rate of a large copy, bytes read and bytes written both counted.

    Args:
        device: 'cpu' or 'cuda'.
        size: Bytes to copy.

    Returns:
        Bytes per second.
    """
    source = torch.ones(size // 4, device=device)
    target = torch.empty_like(source)
    return 2 * size / _typical(lambda: target.copy_(source), device)


def exponential_rate(device: str, size: int = MIB) -> float:
    """Rate of exp on data in the cache.

    Args:
        device: 'cpu' or 'cuda'.
        size: Bytes of the data.

    Returns:
        Values per second.
    """
    values = torch.randn(size // 4, device=device)
    out = torch.empty_like(values)
    return values.numel() / _typical(lambda: torch.exp(values, out=out), device)


def _typical(step: Step, device: str) -> float:
    """Median time of a short step, in seconds; each reading lasts at least a few milliseconds."""
    step()
    inner = max(int(5e-3 / max(once(step, device), 1e-6)), 1)

    def several():
        for _ in range(inner):
            step()

    return statistics.median(once(several, device) / inner for _ in range(9))
