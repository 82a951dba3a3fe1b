"""Locks of folders, and lifetimes of processes."""

import ctypes
import errno
import fcntl
import os
import signal
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from mmseg_cct.errors import UserError

_LOCK = '.lock'
_CONTENT = 'process '
_PR_SET_PDEATHSIG = 1  # of prctl(2)


@contextmanager
def locked_folder(folder: str | Path, what: str) -> Iterator[None]:
    """Holds a folder's lock; the system releases it however the process ends.

    Creates a missing folder. If another process holds the lock, a `UserError` says that `what` uses
    it.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    with _open_lock(Path(folder, _LOCK)) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                file.seek(0)
                raise UserError(
                    f'{folder}: in use by {what}, {file.read().strip() or "of unknown process"}; '
                    'expected a folder of its own, or that one to end'
                ) from None
            # Some network file systems have no locks.
        file.seek(0)
        file.truncate()
        file.write(f'{_CONTENT}{os.getpid()} on {socket.gethostname()}\n')
        file.flush()
        yield


def _open_lock(path: Path) -> TextIO:
    """Opens a lock, but only one of this module: no link and no file with other text."""
    try:
        # without O_NONBLOCK, a FIFO would wait for its other end
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        raise UserError(f'{path}: {error.strerror}; expected a lock of a training') from None
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
        file = os.fdopen(descriptor, 'r+', encoding='utf-8', errors='replace')
        if _CONTENT.startswith(file.read(len(_CONTENT))):
            return file
        file.close()
    else:
        os.close(descriptor)
    raise UserError(f'{path}: not a lock file of a training; expected no other file there')


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
