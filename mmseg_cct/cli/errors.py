"""Ends a tool with one line or none on a user's mistake, Ctrl-C or a closed pipe."""

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mmseg_cct.errors import TRACEBACK_VARIABLE, UserError
from mmseg_cct.stack import StackError

# torch's words for what happens to loading workers, and what to do
_LOADER_ERRORS = {
    r'</torch_\S+ No space left|signal: Bus error': (
        'a loading worker cannot hand over a batch, /dev/shm is full; expected more of it '
        '(docker run --shm-size=8g), or num_workers=0 of the data loaders'
    ),
    # one that ended by itself, at whatever moment torch noticed
    r'DataLoader worker \(pid.*(killed by signal|exited unexpectedly)': (
        'a loading worker was killed, perhaps for memory; expected fewer workers '
        '(num_workers of the data loaders), smaller images or a smaller batch_size'
    ),
    r'DataLoader timed out after': (
        'no batch came from the loading workers for minutes; expected images on a disk that '
        'answers, num_workers=0, or a greater timeout of the data loaders'
    ),
}
_PATIENCE = 5.0  # seconds that the other ranks leave rank 0 to report a mistake


@contextmanager
def user_errors_as_one_line() -> Iterator[None]:
    """Ends the process with exit code 2 and one line on stderr for each mistake of the user.

    Errors of the operating system end it likewise. Other exceptions keep their traceback, as do all
    if `MMSEG_CCT_TRACEBACK` is set. In a distributed run, rank 0 prints at once. The other ranks
    wait first: rank 0 has usually met the same mistake, and the launcher ends all ranks when it
    ends. Ctrl-C ends the process with code 130, a closed pipe silently with code 0.
    """
    if hasattr(sys.stdout, 'reconfigure'):  # a file name may be no text
        sys.stdout.reconfigure(errors='backslashreplace')
    is_first = os.environ.get('RANK', '0') == '0'
    try:
        yield
        print(end='', flush=True)
    except KeyboardInterrupt:
        if is_first:
            print('\nstopped', file=sys.stderr, flush=True)
        _leave_group()
        raise SystemExit(130) from None
    except BrokenPipeError:
        # the interpreter flushes once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except Exception as error:
        lines = _lines_of(error)
        if lines is None or os.environ.get(TRACEBACK_VARIABLE):
            raise
        if not is_first:
            time.sleep(_PATIENCE)
        for line in lines.splitlines():
            print(f'error: {line}', file=sys.stderr, flush=True)
        _leave_group()
        raise SystemExit(2) from None


def hand_over_error(queue: Any, error: Exception, item: Any) -> None:
    """Puts the error itself into a loader's queue in place of a batch that cannot be put there.

    Python prints it and forgets the batch, for which the training would wait for ever.
    """
    from torch._utils import ExceptionWrapper

    queue.put((item[0], ExceptionWrapper(where='in a loading worker')))  # of the current exception


def _lines_of(error: Exception) -> str | None:
    """Returns the message for what is no bug of this program; None for a bug."""
    for words, line in _LOADER_ERRORS.items():
        if isinstance(error, RuntimeError | UserError) and re.search(words, str(error)):
            return line
    if isinstance(error, (UserError, StackError)):
        # a DataLoader makes a worker's error anew from its traceback, which ends in the message
        return str(error).rpartition(f'{UserError.__name__}: ')[2].strip()
    if isinstance(error, OSError) and error.errno is not None:
        return f'{error.filename or type(error).__name__}: {error.strerror}'
    return None


def _leave_group() -> None:
    if 'torch' not in sys.modules:
        return
    from torch import distributed

    # gloo's threads may abort a process that ends without leaving. With NCCL, leaving would wait
    # for other ranks.
    if distributed.is_initialized() and distributed.get_backend() == 'gloo':
        distributed.destroy_process_group()
