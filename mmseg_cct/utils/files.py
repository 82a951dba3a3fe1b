"""Atomic file writes, records that are read with a schema, and guards of what is read."""

import json
import os
import secrets
import typing
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, TypeVar

from mmseg_cct.errors import UserError

T = TypeVar('T')

# The first bytes of checkpoints and of ONNX files.
ZIP, ONNX = b'PK\x03\x04', b'\x08'
LOCK = '.lock'
# File managers leave these behind; a folder with nothing else counts as empty.
_UNSEEN = ('.DS_Store', 'Thumbs.db', 'desktop.ini', LOCK)
# The pattern of files that are being written.
PART = '.*-*.part*'


@contextmanager
def part_of(file: str | Path, suffix: str = '') -> Iterator[Path]:
    """Makes a file appear once it is complete: readers see the old file or the new one.

    Yields the path to write it at, which ends in `suffix`; without a file there, nothing changes.
    """
    path = Path(file)
    # Two processes may write the same file, and its name may already be as long as is allowed.
    part = path.with_name(f'.{os.getpid()}-{secrets.token_hex(4)}.part{suffix}')
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


def remove_parts(folder: str | Path, pattern: str = '') -> None:
    """Removes what killed writers left in a folder; no other process may be writing to it.

    The `pattern` is that of subfolders; `**/` means all.
    """
    for part in Path(folder).glob(pattern + PART):
        part.unlink(missing_ok=True)


def read_utf8(file: str | os.PathLike, expected: str) -> str:
    """Reads UTF-8, with or without a byte order mark, and keeps the line ends."""
    path = Path(file)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UserError(file, 'is a device or a pipe, which may have no end', expected)
    try:
        text = path.read_bytes().decode('utf-8-sig')
    except OSError as error:
        raise UserError(file, f'cannot be read ({error.strerror})', expected) from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise UserError(
            file,
            f'cannot be read (byte {byte:#04x} at {error.start} is not UTF-8)',
            f'{expected}, saved as UTF-8',
        ) from None
    # UTF-16 without a mark is valid UTF-8 as long as it is ASCII.
    if '\0' in text:
        raise UserError(
            file,
            f'cannot be read (a zero byte at {text.index(chr(0))})',
            f'{expected}, saved as UTF-8',
        )
    return text


def read_record(file: str | Path, kind: type[T], expected: str) -> T:
    """Reads a JSON file that a tool wrote for itself into a named tuple or data class.

    The annotations of `kind` are the schema; `expected` says what the file holds, and what to do.
    """
    text = read_utf8(file, expected)
    try:
        return _record(json.loads(text), kind)
    except (ValueError, TypeError, RecursionError) as error:
        found = f'damaged, or of another version ({error})'
        raise UserError(str(file), found, expected) from None


def write_record(file: str | Path, content: Any) -> None:
    """Writes a named tuple so that `read_record` reads it."""
    lines = (f' {json.dumps(key)}: {json.dumps(value)}' for key, value in content._asdict().items())
    write_text(file, '{\n' + ',\n'.join(lines) + '\n}\n')


def append_line(file: str | Path, content: Any) -> None:
    """Appends JSON to a file of lines; a line that a kill cut short stays apart from it."""
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    with open(file, 'a', encoding='utf-8') as opened:
        opened.write(f'\n{json.dumps(content)}')


def read_lines(file: str | Path, kind: type[T]) -> Iterator[T]:
    """Reads what `append_line` wrote and skips damaged lines; `kind` is as in `read_record`."""
    text = Path(file).read_text(encoding='utf-8', errors='replace') if Path(file).is_file() else ''
    for line in text.split('\n'):
        with suppress(ValueError, TypeError, RecursionError):
            yield _record(json.loads(line), kind)


def _record(content: Any, kind: type[T]) -> T:
    if not isinstance(content, dict):
        raise TypeError('no JSON object')
    record = kind(**content)
    for name, hint in typing.get_type_hints(kind).items():
        if not _fits(getattr(record, name), hint):
            raise TypeError(f'{name}: {str(getattr(record, name))[:40]!r}')
    return record


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value of JSON is of a type: a plain one, a list, a dict, or one of several."""
    parts = typing.get_args(hint)
    kind = typing.get_origin(hint) or hint
    if kind is Any:
        return True
    if kind is list:
        return isinstance(value, list) and all(_fits(each, *parts) for each in value)
    if kind is dict:
        return isinstance(value, dict) and all(_fits(each, parts[1]) for each in value.values())
    if parts:
        return any(_fits(value, part) for part in parts)
    return type(value) is kind


def require_outside(place: str | Path, inputs: Iterable[str | Path], option: str) -> None:
    """Rejects an output that is one of the files and folders that are read, or lies below one."""
    real = _real(place)
    for source in map(_real, inputs):
        if real == source and not source.is_dir():
            raise UserError(option, f'{place} is read', 'another file to write')
        if source == real or source in real.parents:
            raise UserError(
                option, f'{place} lies in the folder {source}, which is read', 'another place'
            )


def require_own_folder(
    folder: str | Path, record: str, option: str = '--out', written: Iterable[str] = ('*',)
) -> None:
    """Rejects a folder that holds files but none that matches the pattern `record`.

    `written` are patterns of the files that the tool might replace; others are left alone.
    """
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise UserError(option, f'{folder} is a file', 'a folder')
    found = sorted(each.name for pattern in written for each in path.glob(pattern))
    foreign = [name for name in found if name not in _UNSEEN and not fnmatch(name, PART)]
    # The record is looked for last: another process may have written it since.
    if foreign and not any(path.glob(record)):
        raise UserError(
            option,
            f'{folder} holds {foreign[0]}, which this tool did not write: there is no {record}',
            'a new or empty folder',
        )


def _real(path: str | Path) -> Path:
    try:
        return Path(os.path.realpath(path))  # `Path.resolve` fails on links in a circle
    except ValueError as error:  # a zero byte
        raise UserError(f'{str(path)!r}', error, 'the path of a folder') from None


def output_file(
    file: str | Path,
    inputs: Iterable[str | Path] = (),
    *,
    begins: bytes = b'',
    overwrite: bool = False,
    option: str = '--out',
) -> Path:
    """Checks that a tool may write a file: a new one, or the tool's own if it is to `overwrite`.

    `inputs` are files and folders that the tool reads, `begins` are the first bytes of all files
    that it writes, and `option` names the file.
    """
    path, inputs = Path(file), list(inputs)
    require_outside(path, inputs, option)
    if not os.path.lexists(path):
        return path
    if path.is_dir():
        raise UserError(path, 'is a folder', 'the name of a file to write')
    if path.is_symlink() or not path.is_file():
        raise UserError(path, 'is a link or a device', 'the name of a file to write')
    if any(os.path.exists(source) and path.samefile(source) for source in inputs):  # a hard link
        raise UserError(option, f'{path} is read', 'another file to write')
    if not overwrite:
        raise UserError(path, 'exists', 'a new file, or --overwrite')
    with path.open('rb') as opened:
        is_own = opened.read(len(begins)) == begins
    if not is_own or path.with_name('last_checkpoint').exists():
        raise UserError(path, 'no earlier output of this tool', 'another file to write')
    return path
