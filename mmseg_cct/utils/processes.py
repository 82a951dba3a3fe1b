"""Processes: their cores, locks of folders, lifetimes, and loading workers that lack something."""

import ctypes
import errno
import os
import re
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from mmseg_cct.errors import UserError

from .files import LOCK
from .text import error_line

_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP)
_PATIENCE = 0.2  # seconds for a file that its holder removes just now
_PR_SET_PDEATHSIG = 1  # of prctl(2)
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
    lock = FileLock(path, timeout=_PATIENCE)
    try:
        lock.acquire()
    except Timeout:
        raise UserError(folder, f'in use by {what}', 'a folder of its own') from None
    except NotImplementedError:  # some network file systems have no locks
        pass
    except OSError as error:  # or say so in other words
        if error.errno not in _WITHOUT_LOCKS:
            raise
    try:
        yield
    finally:
        # While the lock is held: a later holder's file would be another one. filelock tries again
        # where it locked a file that was removed.
        with suppress(OSError):  # Windows removes no open file; there, filelock does it
            path.unlink()
        lock.release()


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
    """Counts the cores that this process may use."""
    if hasattr(os, 'sched_getaffinity'):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cores_of_process() -> int:
    """Counts the usable cores for each process of a launcher on this machine; may be 0."""
    return usable_cores() // max(int(os.environ.get('LOCAL_WORLD_SIZE', 1)), 1)


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
