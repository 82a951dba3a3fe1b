"""One line for settings that a library cannot use."""

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmseg_cct.errors import TRACEBACK_VARIABLE, UserError

from .text import one_line

_PACKAGE = Path(__file__).parents[1]
_IN_WORKER = re.compile(r'File "([^"<]+)", line')


@contextmanager
def library_errors_as_one_line(key: str, fails: str, expected: str) -> Iterator[None]:
    """Replaces a library's traceback by one line that names a file or key of the config.

    Errors of this package or of the user's code are bugs and keep their traceback, as do those of
    the system, which no single setting causes.
    """
    try:
        yield
    except (UserError, OSError):
        raise
    except Exception as error:
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        # a DataLoader puts the traceback of its worker into the message
        file = Path([*files, *_IN_WORKER.findall(str(error))][-1])
        is_library = {'site-packages', 'dist-packages'} & {*file.parts}
        if not is_library or _PACKAGE in file.parents:
            raise
        lines = str(error).strip().splitlines() or ['']
        message = one_line(f'{type(error).__name__}: {lines[-1]}', 200)
        hint = f'({TRACEBACK_VARIABLE}=1 shows the traceback)'
        raise UserError(key, f'{fails} ({message})', f'{expected} {hint}') from error
