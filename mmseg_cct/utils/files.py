"""Atomic file writes, records of the tools, locks of folders, and guards of what is read."""

import errno
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from mmseg_cct.errors import UserError

T = TypeVar('T')

LOCK = '.lock'
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP)
_PATIENCE = 0.2  # seconds for a file that its holder removes just now
# File managers leave these behind; a folder with nothing else counts as empty.
_UNSEEN = ('.DS_Store', 'Thumbs.db', 'desktop.ini', LOCK)
# The pattern of files that are being written.
PART = '.*-*.part*'


@contextmanager
def part_of(file: str | Path) -> Iterator[Path]:
    """Makes a file appear once it is complete: readers see the old file or the new one.

    Yields the path to write it at; without a file there, nothing changes.
    """
    path = Path(file)
    # Two processes may write the same file, and its name may already be as long as is allowed.
    part = path.with_name(f'.{os.getpid()}-{secrets.token_hex(4)}.part')
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield part
        if part.exists():
            # A rename may reach the disk before the data, so a power cut would leave an empty file.
            with suppress(PermissionError), part.open('r+b') as written:  # a copy is read-only
                os.fsync(written.fileno())
            os.replace(part, path)
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk has none
        raise
    finally:
        part.unlink(missing_ok=True)


def write_atomic(file: str | Path, data: bytes) -> None:
    """Writes a file and makes its folders; readers see the old file or the new one."""
    with part_of(file) as part:
        part.write_bytes(data)


def write_text(file: str | Path, text: str) -> None:
    """Writes UTF-8; the bytes of a file name that are not UTF-8 become escapes."""
    write_atomic(file, text.encode(errors='backslashreplace'))


def cache_folder() -> Path:
    """Makes the folder of libraries and features kept for later, to which nobody else may write."""
    folder = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache') / 'mmseg_cct'
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, 'geteuid'):
        status, user = folder.stat(), os.geteuid()
        # whoever writes there chooses what code runs here; root may use a cache mounted by a user
        if status.st_mode & 0o022 or user not in (status.st_uid, 0):
            raise PermissionError(f'other users may write to {folder}; set XDG_CACHE_HOME')
    return folder


def remove_parts(folder: str | Path, pattern: str = '') -> None:
    """Removes what killed writers left in a folder; no other process may be writing to it.

    The `pattern` is that of subfolders; `**/` means all.
    """
    for part in Path(folder).glob(pattern + PART):
        part.unlink(missing_ok=True)


def read_utf8(file: str | os.PathLike, expected: str) -> str:
    """Reads UTF-8, with or without a byte order mark, and keeps the line ends."""
    try:
        return Path(file).read_bytes().decode('utf-8-sig')
    except OSError as error:
        raise UserError(file, f'cannot be read ({error.strerror})', expected) from None
    except UnicodeDecodeError as error:
        byte = f'byte {error.object[error.start]:#04x} at {error.start} is not UTF-8'
        raise UserError(file, f'cannot be read ({byte})', f'{expected}, as UTF-8') from None


def read_record(file: str | Path, record_type: Callable[..., T], expected: str) -> T:
    """Reads a JSON file that a tool wrote for itself into a named tuple or data class.

    `expected` says what the file holds, and what to do.
    """
    text = read_utf8(file, expected)
    try:
        return record_type(**json.loads(text))
    except (ValueError, TypeError) as error:
        damage = f'damaged, or of another version ({error})'
        raise UserError(str(file), damage, expected) from None


def write_record(file: str | Path, content: Any) -> None:
    """Writes a named tuple so that `read_record` reads it."""
    lines = (f' {json.dumps(key)}: {json.dumps(value)}' for key, value in content._asdict().items())
    write_text(file, '{\n' + ',\n'.join(lines) + '\n}\n')


def append_line(file: str | Path, content: Any) -> None:
    """Appends JSON to a file of lines; a line that a kill cut short stays apart from it."""
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    # The line break comes first: at the end it would be what a kill cuts off.
    with open(file, 'a', encoding='utf-8') as opened:
        opened.write(f'\n{json.dumps(content)}')


def read_lines(file: str | Path, record_type: type[T]) -> Iterator[T]:
    """Reads what `append_line` wrote as records, and skips damaged lines."""
    text = Path(file).read_text(encoding='utf-8', errors='replace') if Path(file).is_file() else ''
    for line in text.split('\n'):
        with suppress(ValueError, TypeError):
            yield record_type(**json.loads(line))


def require_outside(output: str | Path, inputs: Iterable[str | Path], option: str) -> None:
    """Rejects an output that is one of the files and folders that are read, or lies below one."""
    real = Path(os.path.realpath(output))  # `Path.resolve` fails on links in a circle
    for source in map(Path, map(os.path.realpath, inputs)):
        if source in (real, *real.parents) and source.exists():
            raise UserError(option, f'{output} is read or lies in {source}, which is read')


def require_own_folder(
    folder: str | Path, record: str, option: str = '--out', written: Iterable[str] = ('*',)
) -> None:
    """Rejects a folder that holds files but none that matches the pattern `record`.

    `written` are patterns of the files that the tool might replace; others are left alone.
    """
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise UserError(option, f'{folder} is a file', 'a folder')
    names = sorted(file.name for pattern in written for file in path.glob(pattern))
    foreign = [name for name in names if name not in _UNSEEN and not fnmatch(name, PART)]
    # The record is looked for last: another process may have written it since.
    if foreign and not any(path.glob(record)):
        problem = f'{folder} holds {foreign[0]}, which this tool did not write: no {record}'
        raise UserError(option, problem, 'a new or empty folder')


def output_file(
    file: str | Path,
    inputs: Iterable[str | Path] = (),
    *,
    overwrite: bool = False,
    option: str = '--out',
) -> Path:
    """Checks that a tool may write a file: a new one, or one to `overwrite` that is no input.

    `inputs` are files and folders that the tool reads, and `option` names the file.
    """
    path = Path(file)
    require_outside(path, inputs, option)
    if os.path.lexists(path) and not overwrite:
        raise UserError(path, 'exists', 'a new file, or --overwrite')
    return path


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
    except (NotImplementedError, OSError) as error:  # some network file systems have no locks
        if isinstance(error, OSError) and error.errno not in _WITHOUT_LOCKS:
            raise
    try:
        yield
    finally:
        # While the lock is held: a later holder's file would be another one. filelock tries again
        # where it locked a file that was removed.
        with suppress(OSError):  # Windows removes no open file; there, filelock does it
            path.unlink()
        lock.release()
