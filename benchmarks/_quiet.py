"""Whether other processes leave this one the cores that its threads need.

The cores are those that this process may use (`taskset`). They are busy for as long as they are not
idle, by /proc/stat; what this process did not use of that, others did, or the host of a virtual
machine. Where the system does not tell, every machine counts as quiet.
"""

import argparse
import dataclasses
import os
import time
from pathlib import Path

# Seconds of others that make no difference: the system's own in each second, and a clock tick.
TOLERANCE = 0.15
TICK = 0.02


@dataclasses.dataclass(frozen=True)
class Reading:
    """Clocks at one moment, in seconds.

    Attributes:
        wall: Of the wall.
        busy: Of all cores together, not idle; None where the system does not tell.
        own: CPU time of this process.
    """

    wall: float
    busy: float | None
    own: float


class Watch:
    """Watches the cores that this process may use.

    Args:
        threads: Threads that this process measures with.
        allow_busy: Whether figures taken beside other processes are printed, marked.
    """

    def __init__(self, threads: int, allow_busy: bool) -> None:
        self.threads = threads
        self.allow_busy = allow_busy
        self.noisy = False
        self.cores = _own_cores()

    def read(self) -> Reading:
        """Reads the clocks.

        Returns:
            The reading.
        """
        return Reading(time.perf_counter(), _busy_seconds(self.cores), time.process_time())

    def others(self, since: Reading) -> float | None:
        """Cores that others kept busy.

        Args:
            since: The reading at the beginning.

        Returns:
            Mean number of cores; None where the system does not tell.
        """
        now = self.read()
        if now.busy is None or since.busy is None:
            return None
        spent = now.busy - since.busy - (now.own - since.own)
        return max(spent, 0.0) / max(now.wall - since.wall, 1e-9)

    def disturbed(self, since: Reading) -> bool:
        """Tells whether others took what the threads of this process need.

        Args:
            since: The reading at the beginning.

        Returns:
            Whether they did.
        """
        others = self.others(since)
        wall = time.perf_counter() - since.wall
        room = max(len(self.cores) - self.threads, 0)
        return others is not None and others > room + TOLERANCE + TICK / max(wall, 1e-9)


def watch() -> Watch:
    """The watch of this process.

    Returns:
        The watch.
    """
    return _watch


def add_busy_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--allow-busy`.

    Args:
        parser: The parser.
    """
    parser.add_argument(
        '--allow-busy',
        action='store_true',
        help='measure beside other processes too, and mark each figure with ~',
    )


def require_quiet(threads: int, allow_busy: bool, seconds: float = 1.0) -> None:
    """Ends the program where other processes leave it too few cores; looks at them while idle.

    Args:
        threads: Threads that this process measures with.
        allow_busy: Whether to go on all the same, with every figure marked.
        seconds: How long to look.

    Raises:
        SystemExit: The cores are too few or busy.
    """
    global _watch
    _watch = Watch(threads, allow_busy)
    cores = len(_watch.cores)
    if cores < threads:
        _refuse(f'--threads {threads}: this process may use {cores} cores')
    since = _watch.read()
    time.sleep(seconds)
    if _watch.disturbed(since):
        _refuse(
            f'other processes keep {_watch.others(since):.1f} of the {cores} cores busy that this '
            f'one may use, and it needs {threads}'
        )


def refuse_turns(discarded: int) -> None:
    """Ends the program, in which too many turns were disturbed.

    Args:
        discarded: How many.

    Raises:
        SystemExit: Always.
    """
    raise SystemExit(
        f'error: other processes disturbed {discarded} turns; expected a quiet machine, fewer '
        '--threads, or --allow-busy, which marks the figures'
    )


def _refuse(why: str) -> None:
    if not _watch.allow_busy:
        raise SystemExit(
            f'error: {why}; expected a quiet machine, fewer --threads, or --allow-busy, which '
            'marks the figures'
        )
    print(f'{why}: every figure is marked with ~')
    _watch.noisy = True


def _own_cores() -> frozenset[int]:
    if hasattr(os, 'sched_getaffinity'):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def _busy_seconds(cores: frozenset[int]) -> float | None:
    try:
        lines = Path('/proc/stat').read_text(encoding='ascii').splitlines()
    except OSError:
        return None
    ticks = 0
    for line in lines:
        name, *values = line.split()
        if name[3:].isdigit() and int(name[3:]) in cores:
            # user nice system idle iowait irq softirq steal; guests count as users already
            ticks += sum(map(int, values[:3])) + sum(map(int, values[5:8]))
    return ticks / os.sysconf('SC_CLK_TCK')


# What the figures of this process are taken under; `require_quiet` sets it.
_watch = Watch(threads=1, allow_busy=True)
