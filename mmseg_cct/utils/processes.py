"""Processes: their cores, locks of folders, lifetimes, and loading workers that lack something."""

import ctypes
import math
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from mmseg_cct.errors import UserError

from .files import LOCK
from .text import error_line

_CONTENT = 'process '
_PATIENCE = 0.2  # seconds for a file that its holder removes just now
_PR_SET_PDEATHSIG = 1  # of prctl(2)
_CGROUP = Path('/sys/fs/cgroup')
_SIGNS = re.compile(
    r'DataLoader worker.*(exited|killed)|shared memory( object|\(shm\))|Too many open files|'
    r'received \d+ items of ancdata|start new thread'
)
_NEEDED = (
    'room in /dev/shm, open files (ulimit -n), processes (ulimit -u) and memory for the loading '
    'workers, or none of them: --cfg-options train_dataloader.num_workers=0 '
    'val_dataloader.num_workers=0'
)


@contextmanager
def locked_folder(folder: str | Path, what: str) -> Iterator[None]:
    """Holds a folder's lock, a file that is removed at the end of the body; makes the folder.

    A killed process leaves the file, but no lock on it. `what` else may hold the lock is named.
    """
    path = Path(folder, LOCK)
    path.parent.mkdir(parents=True, exist_ok=True)
    holder = _read_lock(path)
    lock = FileLock(path, timeout=_PATIENCE)
    try:
        lock.acquire()
    except Timeout:
        found = f'in use by {what}, {holder or "of unknown process"}'
        expected = 'a folder of its own, or that one to end'
        raise UserError(folder, found, expected) from None
    except NotImplementedError:  # some network file systems have no locks
        pass
    try:
        with suppress(OSError):  # Windows locks the content too
            path.write_text(f'{_CONTENT}{os.getpid()} on {socket.gethostname()}\n')
        yield
    finally:
        # While the lock is held: a later holder's file would be another one. filelock tries again
        # where it locked a file that was removed.
        with suppress(OSError):  # Windows removes no open file; there, filelock does it
            path.unlink()
        lock.release()


def _read_lock(path: Path) -> str:
    """Reads who wrote a lock, which is no link and no file with other text."""
    try:
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
            text = path.read_text(encoding='utf-8', errors='replace')
            if (text or _CONTENT).startswith(_CONTENT):
                return text.strip()
    except (FileNotFoundError, PermissionError):  # Windows locks the content too
        return ''
    raise UserError(path, 'not a lock file of this project', 'no other file there')


def end_session(process: subprocess.Popen, at_once: bool = False) -> None:
    """Ends a process that began a session, with its children; on Windows, the process alone."""
    if not hasattr(os, 'killpg'):
        (process.kill if at_once else process.terminate)()
        return
    with suppress(ProcessLookupError):  # it may have ended before its thread noticed
        os.killpg(process.pid, signal.SIGKILL if at_once else signal.SIGTERM)


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


def lacking(error: BaseException) -> str | None:
    """Describes an error of processes that lack something that they share; None for others."""
    frames = traceback.extract_tb(error.__traceback__)
    between = any('multiprocessing' in Path(frame.filename).parts for frame in frames)
    if not ((between and isinstance(error, (OSError, EOFError))) or _SIGNS.search(str(error))):
        return None
    return f'{error_line(error, 200)}; expected {_NEEDED}'


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the memory of the machine, a process or a GPU does not suffice."""
    # torch, which may not be imported here, has its own type only for GPUs; the last is oneDNN's
    said = ("can't allocate memory", 'could not create a primitive')
    is_torchs = type(error).__name__ == 'OutOfMemoryError' or any(
        map(str(error).__contains__, said)
    )
    return is_torchs or isinstance(error, MemoryError)


def end_workers_that_lose_a_batch() -> None:
    """Makes a loading worker end if it cannot pass on a batch.

    Python's queues only print the error, say that shared memory is full, and the training would
    wait for the batch forever.
    """
    from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter as Loading

    Queue._on_queue_feeder_error = staticmethod(_end_worker)  # type: ignore[attr-defined]
    delete = getattr(Loading.__del__, 'whole', Loading.__del__)

    def delete_quietly(loading: Any) -> None:
        with suppress(AttributeError):  # its queues could not be made
            delete(loading)

    delete_quietly.whole = delete  # type: ignore[attr-defined]
    Loading.__del__ = delete_quietly  # type: ignore[method-assign]


def _end_worker(error: BaseException, batch: Any) -> None:
    from torch.utils.data import get_worker_info

    if get_worker_info() is None:
        traceback.print_exception(error)  # as Python does
        return
    # one write: workers do not mix lines
    print(f'a loading worker: {error_line(error, 200)}\n', end='', file=sys.stderr, flush=True)
    os._exit(1)
