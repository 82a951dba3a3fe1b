"""Locks of folders, and lifetimes of processes."""

import ctypes
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from mmseg_cct.errors import UserError

from .files import LOCK

_CONTENT = 'process '
_PATIENCE = 0.2  # seconds for a file that its holder removes just now
_PR_SET_PDEATHSIG = 1  # of prctl(2)


@contextmanager
def locked_folder(folder: str | Path, what: str) -> Iterator[None]:
    """Holds a folder's lock, a file that is removed at the end of the body; makes the folder.

    A killed process leaves the file, but no lock on it. `what` else may hold the lock is named.

    Raises:
        UserError: If another process holds the lock, or a file of its name is somebody else's.
    """
    path = Path(folder, LOCK)
    path.parent.mkdir(parents=True, exist_ok=True)
    holder = _read_lock(path)
    lock = FileLock(path, timeout=_PATIENCE)
    try:
        lock.acquire()
    except Timeout:
        raise UserError(
            folder,
            f'in use by {what}, {holder or "of unknown process"}',
            'a folder of its own, or that one to end',
        ) from None
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
