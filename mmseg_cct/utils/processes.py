"""Processes and threads: connected ones, their shares of images, their cores and their end.

Threads that read and write images are kept until the process ends. Python's join returns before a
thread has released its storage in OpenCV, which it does under OpenCV's mutex. A loader's worker
that is forked at that moment inherits the mutex locked, and waits in its first `imdecode` for ever.
So no thread that reads images ends before a fork: idle ones hold nothing.
"""

import ctypes
import datetime
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar

import torch.distributed
from mmengine.dist import all_gather_object, broadcast_object_list, get_rank, get_world_size
from tqdm import tqdm

from mmseg_cct.errors import UserError

T = TypeVar('T')
R = TypeVar('R')

# The first process to finish waits for the last.
_TIMEOUT = datetime.timedelta(days=30)
_PR_SET_PDEATHSIG = 1  # of prctl(2)


@contextmanager
def connected(launcher: str) -> Iterator[int]:
    """Connects a launcher's processes by gloo, which needs no GPU; yields this one's rank.

    Call `set_ranks` first, unless the launcher is `none` (a single process).
    """
    if launcher == 'none':
        yield 0
        return
    torch.distributed.init_process_group('gloo', timeout=_TIMEOUT)
    yield get_rank()
    # Not after an error: the process ends then, and its message needs the group's store.
    torch.distributed.destroy_process_group()


def on_first_process(function: Callable[[], T]) -> T:
    """Calls a function on rank 0; its result, `UserError` or `OSError` is that of all ranks."""
    outcome: list[Any] = [None, None]
    if get_rank() == 0:
        try:
            outcome[0] = function()
        except (UserError, OSError) as error:
            outcome[1] = error
    # An exception that only rank 0 raised would leave the others waiting for it.
    broadcast_object_list(outcome)
    result, mistake = outcome
    if mistake is not None:
        raise mistake
    return result


def gather(value: T) -> list[T]:
    """Waits for all processes, of which none may have ended; returns the values by rank."""
    try:
        return all_gather_object(value)
    except RuntimeError:
        problem = 'another process ended before its share was done; run the same command again'
        raise UserError(problem, 'finished images are kept') from None


def progress_bar(number: int, done: int) -> tqdm:
    """Shows rate and time left on rank 0.

    `number` counts this process's images; `done` those that an earlier run finished on all.
    """
    processes = get_world_size()
    title = f'process 1 of {processes}' if processes > 1 else None
    look: Any = dict(desc=title, unit='image', smoothing=0.1, disable=get_rank() != 0)
    return tqdm(initial=done // processes, total=done // processes + number, **look)


@dataclass
class ImageCounts:
    """Counts of images: written, finished by an earlier run (skipped), failed (a line each)."""

    written: int = 0
    skipped: int = 0
    failed: list[str] = field(default_factory=list)

    def describe(self, out: str) -> str:
        """Gives the counts in one line; `out` is the output folder."""
        written = f'{self.written} written to {out}, {self.skipped} there already'
        return f'{written}, {len(self.failed)} unreadable'


class SharedImages(Generic[T]):
    """The images that are left `todo`, the same in all processes, and shared between them.

    Its `bar` is a context that shows progress. An earlier run had finished the `skipped` ones.
    """

    def __init__(self, todo: Sequence[T], skipped: int = 0) -> None:
        self.own = todo[get_rank() :: get_world_size()]  # every n-th of n processes
        self._counts = ImageCounts(skipped=skipped)
        self.bar = progress_bar(len(self.own), skipped)

    def written(self, number: int = 1) -> None:
        """Counts images whose files were written."""
        self._counts.written += number
        self.bar.update(number)

    def failed(self, line: str) -> None:
        """Counts an image that could not be read, as the line says."""
        self._counts.failed.append(line)
        self.bar.update()

    def total(self) -> ImageCounts:
        """Waits for all processes and adds up their counts."""
        parts = gather(self._counts)
        failed = sorted(line for part in parts for line in part.failed)
        return ImageCounts(sum(part.written for part in parts), self._counts.skipped, failed)


@cache
def image_threads() -> ThreadPoolExecutor:
    """Returns the process's pool, which nobody shuts down; its functions submit nothing to it."""
    return ThreadPoolExecutor(min(16, (os.cpu_count() or 1) + 4), 'images')


if hasattr(os, 'register_at_fork'):  # a fork has none of its parent's threads
    os.register_at_fork(after_in_child=image_threads.cache_clear)


def ahead(function: Callable[[T], R], items: Iterable[T], num_waiting: int = 4) -> Iterator[R]:
    """Yields a function's results in the order of the items, computing a few ahead.

    The function, which must not use `ahead` itself, runs in other threads, the iteration over
    items in this one. An exception of the function is raised when its result is due. When the
    results end, by it or because nobody asks for more, no call runs any longer.
    """
    # Threads suffice: decoders and encoders of images release the interpreter's lock.
    waiting: deque[Future[R]] = deque()
    try:
        for item in items:
            waiting.append(image_threads().submit(function, item))
            if len(waiting) > num_waiting:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        wait(waiting)


def end_with_parent() -> None:
    """Asks Linux to kill this process as soon as its parent ends in any way.

    A killed launcher does not stop its ranks, which would wait for each other forever.
    """
    if sys.platform != 'linux':
        return
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended just before
        os.kill(os.getpid(), signal.SIGKILL)


def usable_cores() -> int:
    """Counts the cores that this process may use, its share of those of a launcher; may be 0."""
    is_linux = hasattr(os, 'sched_getaffinity')
    cores = len(os.sched_getaffinity(0)) if is_linux else os.cpu_count() or 1
    return cores // max(int(os.environ.get('LOCAL_WORLD_SIZE', 1)), 1)
