"""Ends a tool with one line or none on a user's mistake, Ctrl-C or a closed pipe."""

import atexit
import errno
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from mmseg_cct.errors import TRACEBACK_VARIABLE, UserError
from mmseg_cct.stack import StackError
from mmseg_cct.utils.processes import is_out_of_memory, lacking
from mmseg_cct.utils.text import error_line

_PATIENCE = 5.0  # seconds that the other ranks leave rank 0 to report a mistake
# Errors of a disk or a path are not bugs: one line, no traceback.
_ENVIRONMENT = {
    getattr(errno, name)
    for name in (
        'EACCES', 'EDQUOT', 'EEXIST', 'EFBIG', 'EIO', 'EISDIR', 'ELOOP', 'EMFILE',
        'ENAMETOOLONG', 'ENFILE', 'ENOENT', 'ENOMEM', 'ENOSPC', 'ENOTDIR', 'ENOTEMPTY', 'EPERM',
        'EROFS',
    )
}  # fmt: skip


# Beginnings of the names of environment variables that libraries and launchers read.
_VARIABLES = (
    *('MPL', 'TQDM_', 'TORCH_', 'PYTORCH_', 'CUDA_', 'OMP_', 'MKL_', 'KMP_', 'OPENBLAS_'),
    *('OPENCV_', 'RANK', 'LOCAL_', 'WORLD_SIZE', 'MASTER_', 'SLURM_', 'OMPI_'),
)


@contextmanager
def user_errors_as_one_line() -> Iterator[None]:
    """Ends the process with exit code 2 and one line on stderr for each mistake of the user.

    Errors of a disk or a path, a full GPU or memory, and an environment variable that a library
    refuses end it likewise. Other exceptions are bugs and keep their traceback, as do all if
    `MMSEG_CCT_TRACEBACK` is set. In a distributed run, rank 0 prints at once. The other ranks wait
    first: rank 0 has usually met the same mistake, and the launcher ends all ranks when it ends.
    Ctrl-C ends the process with code 130 and a line that says how the work goes on, a closed pipe
    silently with code 0.
    """
    for name in ('stdout', 'stderr'):
        if getattr(sys, name) is None:  # closed by who started the tool
            setattr(sys, name, open(os.devnull, 'w'))  # noqa: SIM115
    if hasattr(sys.stdout, 'reconfigure'):  # a file name may be no text
        sys.stdout.reconfigure(errors='backslashreplace')
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        if os.environ.get('RANK', '0') == '0':
            print(f'\nstopped: {error}' if str(error) else '\nstopped', file=sys.stderr, flush=True)
        _leave_group()
        raise SystemExit(130) from None
    except BrokenPipeError:
        _forget_output()
        raise SystemExit(0) from None
    except Exception as error:
        lines = _lines_of(error)
        if lines is None or os.environ.get(TRACEBACK_VARIABLE):
            raise
        if os.environ.get('RANK', '0') != '0':
            time.sleep(_PATIENCE)
        for line in lines.splitlines():
            print(f'error: {line}', file=sys.stderr, flush=True)
        _leave_group()
        raise SystemExit(2) from None


def end_quietly() -> None:
    """Makes this process end without a traceback on Ctrl-C or a closed pipe.

    It covers what `user_errors_as_one_line` does not reach: the imports before it, and the output
    that the interpreter writes at exit.
    """
    atexit.unregister(_flush)
    atexit.register(_flush)
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _report


def _report(kind: type[BaseException], error: BaseException, traceback: Any) -> None:
    if issubclass(kind, KeyboardInterrupt):
        print('\nstopped', file=sys.stderr, flush=True)
        os._exit(130)
    if issubclass(kind, BrokenPipeError):
        os._exit(0)
    sys.__excepthook__(kind, error, traceback)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except (BrokenPipeError, ValueError):  # closed by its reader, or by us
        _forget_output()


def _forget_output() -> None:
    """Sends what the interpreter still writes to the null device."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _lines_of(error: Exception) -> str | None:
    """Returns the message for a user's mistake or a full disk or GPU; None for a bug."""
    if isinstance(error, (UserError, StackError)):
        return str(error)
    if said := lacking(error):
        return said
    # an import, by the linker or by C code that got no memory
    if any(sign in str(error) for sign in ('failed to map segment', 'without exception set')):
        return 'a library cannot be loaded; expected more address space (ulimit -v)'
    if str(error).startswith('Symlink loop'):  # of `Path.resolve`
        return str(error)
    if isinstance(error, BlockingIOError):  # of fork
        return 'no process can be started; expected room for some (ulimit -u)'
    if isinstance(error, OSError):
        place = f'{error.filename}: ' if error.filename else ''
        return f'{place}{error.strerror}' if error.errno in _ENVIRONMENT else None
    if is_out_of_memory(error):
        return (
            f'{error_line(error, 200)}; try a smaller batch_size or crop, in a '
            'training also --amp or model.auxiliary_head.position_fraction below 1'
        )
    return _refused_variable(error)


def _refused_variable(error: Exception) -> str | None:
    """Returns the message for an environment variable whose value a library refuses."""
    if not isinstance(error, (ValueError, RuntimeError)):
        return None
    for name, value in os.environ.items():
        is_read = name.startswith(_VARIABLES) and value and not value.isdecimal()
        if is_read and re.search(rf'(?<!\w){re.escape(value)}(?!\w)', str(error)):
            return f'{name}={value!r}: an environment variable ({error_line(error, 200)})'
    return None


def _leave_group() -> None:
    if 'torch' not in sys.modules:
        return
    from torch import distributed

    # gloo's threads may abort a process that ends without leaving. With NCCL, leaving would wait
    # for other ranks.
    if distributed.is_initialized() and distributed.get_backend() == 'gloo':
        distributed.destroy_process_group()
