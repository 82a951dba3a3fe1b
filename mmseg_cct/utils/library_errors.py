"""One-line errors for settings that a library cannot use."""

import os
import re
import site
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from mmseg_cct.errors import TRACEBACK_VARIABLE, UserError

from .processes import is_out_of_memory, lacking
from .text import error_line

_PACKAGE = Path(__file__).parents[1].resolve()
_IN_WORKER = re.compile(r'File "([^"<]+)", line (\d+)')


@contextmanager
def library_errors_as_one_line(place: str, fails: str, expected: str) -> Iterator[None]:
    """Replaces a library's traceback by one line that names a file or key of the config.

    Errors of this package or of the user's code are bugs and keep their traceback. Errors of the
    disk keep theirs, and so do a full memory and workers that lack something, which no single
    setting causes.
    """
    try:
        yield
    except (UserError, OSError):
        raise
    except Exception as error:
        if lacking(error) or is_out_of_memory(error):
            raise
        where = library_place(error)
        if where is None:
            raise
        original = original_error(error)
        if 'NoneType takes no arguments' in str(original):  # in place of what transformers 5 lacks
            expected = "what mmpretrain imports: pip install 'transformers<5'"
        raise UserError(
            place,
            f'{fails} ({error_line(last_line(original), 200)} in {where})',
            f'{expected} ({TRACEBACK_VARIABLE}=1 shows the traceback)',
        ) from error


def original_error(error: BaseException) -> BaseException:
    """Undoes mmengine's rewording, which adds the hook to the message of a TypeError."""
    inner = error.__context__
    if inner is not None and type(inner) is type(error) and str(error).startswith(str(inner)):
        return inner
    return error


def last_line(error: BaseException) -> BaseException:
    """Removes the traceback of a DataLoader's worker from the message of an error."""
    text = str(error.args[0]) if error.args else ''
    if 'Original Traceback' not in text:
        return error
    message = text.strip().splitlines()[-1].removeprefix(f'{type(error).__name__}: ')
    return Exception.__new__(type(error), message)


def library_place(error: BaseException) -> str | None:
    """Finds the line of a library that raised an error."""
    error = original_error(error)
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if error.args and 'Original Traceback' in str(error.args[0]):
        frames += _IN_WORKER.findall(str(error.args[0]))
    files = [(Path(file), line) for file, line in frames if os.path.isfile(file)]
    if not files:
        return None
    file, line = files[-1]
    parents = file.resolve().parents
    if _PACKAGE in parents or not any(folder in parents for folder in _libraries()):
        return None
    return f'{"/".join(file.parts[-3:])}:{line}'


@cache
def _libraries() -> tuple[Path, ...]:
    """Lists the folders of libraries; OpenMMLab's are often installed from a clone."""
    paths = sysconfig.get_paths()
    folders = [paths['stdlib'], paths['purelib'], paths['platlib'], site.getusersitepackages()]
    for name in ('mmengine', 'mmcv', 'mmseg', 'mmpretrain'):
        spec = find_spec(name)
        folders += (spec and spec.submodule_search_locations) or []
    return tuple(Path(folder).resolve() for folder in folders)
