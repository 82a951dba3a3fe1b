"""Locks of folders, and lifetimes of processes."""

import ctypes
import errno
import fcntl
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmseg_cct.errors import UserError

_LOCK = '.lock'
_PR_SET_PDEATHSIG = 1  # of prctl(2)


@contextmanager
def locked_folder(folder: str | Path, what: str) -> Iterator[None]:
    """Holds a folder's lock, which the system releases however the process ends.

    Makes a missing folder. If another process holds the lock, a `UserError` says that `what` uses
    it.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    with Path(folder, _LOCK).open('a+', encoding='utf-8') as file:
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
        file.truncate(0)
        file.write(f'process {os.getpid()} on {socket.gethostname()}\n')
        file.flush()
        yield


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
