"""The one exception for mistakes in a config or in data, and how tools print it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed


class UserError(ValueError):
    """A mistake in a config or in data that the user can mend.

    The message is one line: it names the file or key, the value found there and what was expected.

    Args:
        message: The line.
    """

    def __init__(self, message: str) -> None:
        # A DataLoader re-raises a worker's error with the worker's whole traceback as its message,
        # whose end is this class's name and the line itself.
        super().__init__(message.rsplit(f'{type(self).__name__}: ', 1)[-1].strip())


@contextmanager
def user_errors_as_one_line() -> Iterator[None]:
    """Ends the process with one line on stderr and exit code 2 where the body raises `UserError`.

    In a distributed run the first rank to meet a mistake prints it; others that meet the same one
    say nothing.

    Yields:
        Nothing; the body runs inside.

    Raises:
        SystemExit: With code 2 in place of a `UserError`.
    """
    try:
        yield
    except UserError as error:
        if _is_first_to_say(str(error)):
            print(f'error: {error}', file=sys.stderr, flush=True)
        raise SystemExit(2) from None


def _is_first_to_say(message: str) -> bool:
    try:
        # Ranks that wait in a reduction cannot be asked, but the store answers at any time.
        store = torch.distributed.distributed_c10d._get_default_store()
        return store.add(f'mmseg_cct/error/{message}', 1) == 1
    except (RuntimeError, ValueError):  # no process group, or the machine that began it is gone
        return os.environ.get('RANK', '0') == '0'
