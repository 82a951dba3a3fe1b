"""The harness of all benchmarks: command line, timing, memory, tables.

Time: the steps take turns, so that a disturbance affects all of them. A step is timed by CUDA
events on a GPU and by the wall clock on a CPU. The process's CPU time (all threads) is measured as
well: if other jobs run, it is the steadier of the two, especially with one thread (several threads
spin while they wait for each other). Ratios are taken within each turn; tables give their median
and, in brackets, their quartiles.

Peak memory of a step: what it needs on top of what exists when it begins (inputs and parameters).
On a GPU it is the allocator's own count. On a CPU it is counted in resident pages: freed heap is
returned first (`malloc_trim`), the kernel's high-water mark is reset (5 into /proc/self/clear_refs)
and read after the step (VmHWM). So what a compiler used while it compiled is not counted.
"""

import argparse
import ctypes
import datetime
import gc
import json
import os
import platform
import re
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.registry import init_default_scope

from mmseg_cct.utils.templates import markdown_table

Step = Callable[[], object]
Figures = dict[str, dict[str, Any]]  # by step

PROJECT = Path(__file__).resolve().parents[1]


def benchmark_parser(doc: str | None) -> argparse.ArgumentParser:
    """Makes a parser with the options that benchmarks share."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--device', choices=['cpu', 'cuda'], default='cpu')
    parser.add_argument(
        '--dtype',
        choices=['float32', 'tf32', 'bfloat16', 'float16'],
        default='float32',
        help="bfloat16, float16: mixed precision; tf32: a GPU's convolutions, as in training",
    )
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--repeats', type=int, default=7, help='readings per median')
    parser.add_argument('--no-compile', action='store_true', help='run the bank uncompiled')
    parser.add_argument('--json', metavar='FILE', help='where to write all figures')
    return parser


def begin(options: argparse.Namespace) -> dict[str, Any]:
    """Prepares the process and describes the machine: the first results."""
    torch.set_num_threads(options.threads)
    # torch's own default, which trainings keep: TF32 for convolutions, not for matrix products
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = options.dtype == 'tf32'
    torch.backends.cudnn.benchmark = options.device == 'cuda'  # as in trainings (env_cfg)
    init_default_scope('mmseg')
    torch.manual_seed(0)
    cpu = re.search(r'^model name\s*: *(.+)', Path('/proc/cpuinfo').read_text(), re.M)
    machine = dict(
        date=datetime.date.today().isoformat(),
        cpu=f'{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} cores',
        threads=str(torch.get_num_threads()),
        torch=torch.__version__,
    )
    if options.device == 'cuda':
        machine['gpu'] = torch.cuda.get_device_name()
    print(markdown_table(['machine', ''], [[*item] for item in machine.items()]), flush=True)
    return dict(machine=machine, dtype=options.dtype, device=options.device)


def save(options: argparse.Namespace, results: dict[str, Any]) -> None:
    """Writes the figures to the file that `--json` names."""
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1), encoding='utf-8')


def autocast(options: argparse.Namespace) -> AbstractContextManager:
    """Mixed precision for 'bfloat16' and 'float16', else nothing."""
    if options.dtype not in ('bfloat16', 'float16'):
        return nullcontext()
    return torch.autocast(options.device, getattr(torch, options.dtype))


def measure(steps: dict[str, Step], options: argparse.Namespace) -> Figures:
    """Times steps that take turns, after a first call and a warm one; then takes their memory.

    Returns for each step, in seconds, `times` and `cpu_times` of each turn and `first` (the first
    call, which compiles), `memory` in bytes, and on a GPU the numbers of `kernels` and `copies`.
    """
    print('\nmeasuring: ' + ', '.join(steps), flush=True)
    turns = [
        {name: _reading(step, options.device) for name, step in steps.items()}
        for _ in range(options.repeats + 2)
    ]
    figures = {}
    for name, step in steps.items():
        times, cpu_times = map(list, zip(*(turn[name] for turn in turns[2:])))
        figures[name] = dict(first=turns[0][name][0], times=times, cpu_times=cpu_times)
        figures[name]['memory'] = _step_peak(step, options.device)
        if options.device == 'cuda':
            figures[name] |= _count_kernels(step)
    return figures


def say_figures(heading: str, figures: Figures, bases: dict[str, Callable[[str], str]]) -> None:
    """Prints a row for each step, with its ratios to others.

    `bases` gives for the title of a ratio the name of the step that a step is compared with.
    """
    rows = []
    for name, row in figures.items():
        times, memory = row['times'], row['memory']
        cells = {
            'a step': name,
            'time': _seconds(statistics.median(times)),
            'range': f'{_seconds(min(times))}–{_seconds(max(times))}',
            'first call': _seconds(row['first']),
            'memory': '–' if memory is None else f'{memory / 2**20:.0f} MiB',
        }
        for title, base_of in bases.items():
            base = figures[base_of(name)]
            cells[title] = _paired_ratio(times, base['times'])
            cells[f'CPU time {title}'] = _paired_ratio(row['cpu_times'], base['cpu_times'])
            cells[f'memory {title}'] = f'{memory / base["memory"]:.3g}×' if base['memory'] else '–'
        cells |= {key: str(row[key]) for key in ('kernels', 'copies') if key in row}
        rows.append(cells)
    print(f'\n### {heading}\n\n{markdown_table([*rows[0]], [[*row.values()] for row in rows])}')


def _seconds(value: float) -> str:
    return f'{value:.2f} s' if value >= 1 else f'{value * 1e3:.3g} ms'


def _paired_ratio(above: list[float], below: list[float]) -> str:
    """Formats the quartiles of two steps' ratios, turn by turn, as '1.23× (1.20–1.27)'."""
    if above is below:
        return '1×'
    first, median, third = np.quantile(np.divide(above, below), (0.25, 0.5, 0.75))
    return f'{median:.3g}× ({first:.3g}–{third:.3g})'


def _reading(step: Step, device: str) -> tuple[float, float]:
    """Runs a step; returns its time and this process's CPU time, in seconds."""
    cpu_begin = time.process_time()
    if device == 'cuda':
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        step()
        end.record()
        torch.cuda.synchronize()
        wall = start.elapsed_time(end) / 1e3
    else:
        begin = time.perf_counter()
        step()
        wall = time.perf_counter() - begin
    return wall, time.process_time() - cpu_begin


def _step_peak(step: Step, device: str) -> float | None:
    """Bytes of a warm step's peak on top of what exists when it begins; None if nothing tells."""
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
    before = _resident()
    step()
    return max(_resident('VmHWM') - before, 0)


def _resident(key: str = 'VmRSS') -> int:
    """Resident memory of this process in bytes: now, or its peak ('VmHWM')."""
    for line in Path('/proc/self/status').read_text().splitlines():
        if line.startswith(key + ':'):
            return int(line.split()[1]) * 1024
    raise OSError(f'/proc/self/status has no {key}')


def _count_kernels(step: Step) -> dict[str, int]:
    """Counts the kernels, and the copies and fills, that a warm step launches on a GPU."""
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
    return dict(kernels=len(names) - copies, copies=copies)
