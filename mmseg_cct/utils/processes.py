"""Processes: their cores, locks of folders and lifetimes."""

import ctypes
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from mmseg_cct.errors import UserError

from .files import LOCK

_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP)
_PATIENCE = 0.2  # seconds for a file that its holder removes just now
_PR_SET_PDEATHSIG = 1  # of prctl(2)


@contextmanager
def locked_folder(folder: str | Path, holder: str) -> Iterator[None]:
    """Holds a folder's lock, a file that is removed at the end of the body; makes the folder.

    A killed process leaves the file, but no lock on it. A message says which `holder` may have it.
    """
    path = Path(folder, LOCK)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, timeout=_PATIENCE)
    try:
        lock.acquire()
    except Timeout:
        raise UserError(folder, f'in use by {holder}', 'a folder of its own') from None
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


def ending_with_this(command: Sequence[Any]) -> list[Any]:
    """Returns a command that Linux kills as soon as this process ends, even if it is killed."""
    if sys.platform != 'linux':
        return list(command)
    start = 'import os, sys; from mmseg_cct.utils.processes import end_with_parent; '
    start += 'end_with_parent(); os.execv(sys.argv[1], sys.argv[1:])'
    return [sys.executable, '-c', start, *command]


def usable_cores() -> int:
    """Counts the cores that this process may use, its share of those of a launcher; may be 0."""
    is_linux = hasattr(os, 'sched_getaffinity')
    cores = len(os.sched_getaffinity(0)) if is_linux else os.cpu_count() or 1
    return cores // max(int(os.environ.get('LOCAL_WORLD_SIZE', 1)), 1)
