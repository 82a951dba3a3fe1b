"""Text for messages, reports and tables; the commands that tools print; errors in one line."""

import difflib
import re
import shlex
import shutil
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mmseg_cct.errors import TRACEBACK_VARIABLE, UserError

_PACKAGE = Path(__file__).parents[1]
_IN_WORKER = re.compile(r'File "([^"<]+)", line')


def one_line(text: object, max_length: int | None = None) -> str:
    """Joins the lines of a text by spaces; after `max_length` characters it ends with `...`."""
    line = ' '.join(str(text).split())
    if max_length is not None and len(line) > max_length:
        line = f'{line[:max_length]} ...'
    return line


def error_line(error: BaseException, max_length: int | None = None) -> str:
    """Formats an error in one line, `Type: message`."""
    return one_line(f'{type(error).__name__}: {error}'.removesuffix(': '), max_length)


def signed(points: float) -> str:
    """Writes a difference in points to one digit, without the minus of -0.0."""
    return f'{round(points, 1) + 0.0:+.1f}'.replace('-', '−')


def counted(number: int, noun: str) -> str:
    """Writes a number and its noun: `1 label`, `2 labels`."""
    return f'{number} {noun}{"" if number == 1 else "s"}'


def natural_order(name: str) -> list[str | int]:
    """Makes a key that sorts `frame_2` before `frame_10`."""
    parts = re.split(r'([0-9]+)', name)  # every second is a number
    return [int(part) if index % 2 else part for index, part in enumerate(parts)]


def close_names(name: str, names: Sequence[str], cutoff: float = 0.6) -> list[str]:
    """Finds at most three names similar to a misspelt one, the most similar first."""
    return difflib.get_close_matches(name, names, n=3, cutoff=cutoff)


def nearest(
    name: str, names: Sequence[str], otherwise: str | None = None, cutoff: float = 0.5
) -> str:
    """Says what a `Problem` expects: asks for the nearest names, or lists all."""
    if close := close_names(name, names, cutoff):
        return f'did you mean {" or ".join(close)}?'
    return f'one of {", ".join(names)}' if otherwise is None else otherwise


def command_line(name: str, *arguments: str | Path) -> str:
    """Returns the command line that runs a tool, for a person to run next."""
    # a script of an environment that is not activated is not found by its name
    package = ['mmseg-cct'] if shutil.which('mmseg-cct') else ['python', '-m', 'mmseg_cct']
    return shlex.join([*package, name.replace('_', '-'), *map(str, arguments)])


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
