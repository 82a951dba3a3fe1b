"""Usable cores of a process, and the waiting of its threads."""

import math
import os
from pathlib import Path

_CGROUP = Path('/sys/fs/cgroup')


def usable_cores() -> int:
    """Counts the cores that this process may use, by its affinity and its cgroup's quota."""
    return max(1, int(min(_own_cores(), _quota())))


def cores_of_process() -> int:
    """Counts the usable cores for each process of a launcher on this machine; may be 0."""
    return usable_cores() // max(int(os.environ.get('LOCAL_WORLD_SIZE', 1)), 1)


def choose_threads() -> None:
    """Chooses how threads of OpenMP wait, and how many there are; call it before torch is imported.

    By default, waiting threads spin, which takes cores from data loaders and other programs. Torch
    respects the affinity but not the quota, so it starts a thread for each core of a large machine.
    Variables that the user has set win.
    """
    os.environ.setdefault('OMP_WAIT_POLICY', 'PASSIVE')
    if usable_cores() < _own_cores():
        os.environ.setdefault('OMP_NUM_THREADS', str(usable_cores()))


def _own_cores() -> int:
    if hasattr(os, 'sched_getaffinity'):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quota() -> float:
    """The cores of a container's quota: its CPU time per period, by cgroup 2 or 1."""
    try:
        if (file := _CGROUP / 'cpu.max').is_file():
            quota, period = file.read_text().split()
        else:
            folder = _CGROUP / 'cpu'
            quota, period = (
                (folder / f'cpu.cfs_{name}_us').read_text() for name in ('quota', 'period')
            )
        return float(quota) / float(period) if float(quota) > 0 else math.inf
    except (OSError, ValueError, ZeroDivisionError):  # no such file, or 'max'
        return math.inf
