"""Atomic file writes, and guards that keep outputs off inputs."""

import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mmseg_cct.errors import UserError

# File managers leave these behind; a folder with nothing else counts as empty.
_UNSEEN = ('.DS_Store', 'Thumbs.db', 'desktop.ini')


def write_atomic(file: str | Path, data: bytes) -> None:
    """Writes a file and makes its folders; a kill at any moment leaves the old file or the new."""
    path = Path(file)
    # Two processes may write the same file, and its name may already be as long as is allowed.
    part = path.with_name(f'.{os.getpid()}-{secrets.token_hex(4)}.part')
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with part.open('xb') as opened:
            opened.write(data)
            opened.flush()
            # A rename may reach the disk before the data, so a power cut would leave an empty file.
            os.fsync(opened.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_text(file: str | Path, text: str) -> None:
    """Writes UTF-8; the bytes of a file name that are not UTF-8 become escapes."""
    write_atomic(file, text.encode(errors='backslashreplace'))


def read_utf8(file: str | os.PathLike, expected: str) -> str:
    """Reads UTF-8, with or without a byte order mark, and keeps the line ends.

    A file that cannot be read or has another encoding is a `UserError`, which says what was
    `expected`.
    """
    try:
        text = Path(file).read_bytes().decode('utf-8-sig')
    except OSError as error:
        raise UserError(f'{file}: cannot be read ({error.strerror}); expected {expected}') from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise UserError(
            f'{file}: cannot be read (byte {byte:#04x} at {error.start} is not UTF-8); expected '
            f'{expected}, saved as UTF-8'
        ) from None
    # UTF-16 without a mark is valid UTF-8 as long as it is ASCII.
    if '\0' in text:
        raise UserError(
            f'{file}: cannot be read (a zero byte at {text.index(chr(0))}); expected {expected}, '
            'saved as UTF-8'
        )
    return text


def read_json(file: str | Path) -> Any:
    """Reads a JSON file that one of the tools wrote; None if it is damaged."""
    try:
        return json.loads(Path(file).read_bytes())
    except (ValueError, RecursionError):
        return None


def remove_parts(folder: str | Path) -> None:
    """Removes what killed writers left in a folder; no other process may be writing to it."""
    for part in Path(folder).glob('.*-*.part'):
        part.unlink(missing_ok=True)


def claim_output_folder(
    folder: str | Path, record: str, data_folders: Iterable[Path] = (), option: str = '--out'
) -> None:
    """Makes an output folder, or reuses one that this tool made before.

    `record` names the file that marks the tool's own folders; it is made if missing. Any other
    folder, or one within `data_folders`, is a `UserError` about `option`.
    """
    require_outside(folder, data_folders, option)
    require_own_folder(folder, record, option)
    # a training may have written a file of that name into its own folder
    if Path(folder, 'last_checkpoint').exists():
        raise UserError(f'{option}: {folder} holds a training; expected a folder of its own')
    if not Path(folder, record).exists():
        write_atomic(Path(folder, record), b'{}\n')


def require_own_folder(folder: str | Path, record: str, option: str = '--out') -> None:
    """Rejects a folder that holds files but none that matches the pattern `record`."""
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise UserError(f'{option}: {folder} is a file; expected a folder')
    found = sorted(each.name for each in path.iterdir()) if path.is_dir() else []
    foreign = [name for name in found if name not in _UNSEEN and not name.endswith('.part')]
    # The record is looked for last: another process may have written it since.
    if foreign and not any(path.glob(record)):
        raise UserError(
            f'{option}: {folder} holds {foreign[0]} and has no {record}, so this tool did not make '
            'it; expected a new or empty folder'
        )


def require_outside(folder: str | Path, data_folders: Iterable[Path], option: str) -> None:
    """Rejects an output folder that is one of the data folders or lies below one."""
    place = _real(folder)
    for data in map(_real, data_folders):
        if data == place or data in place.parents:
            raise UserError(
                f'{option}: {folder} lies in the folder {data}, which is read; expected another '
                'place'
            )


def _real(path: str | Path) -> Path:
    try:
        return Path(os.path.realpath(path))  # `Path.resolve` fails on links in a circle
    except ValueError as error:  # a zero byte
        raise UserError(f'{str(path)!r}: {error}; expected the path of a folder') from None


def require_new_file(
    file: str | Path, overwrite: bool = False, inputs: Iterable[str | Path] = ()
) -> None:
    """Rejects an output file that is an input or a folder, or exists without `overwrite`."""
    path = Path(file)
    if not os.path.lexists(path):
        return
    if path.is_dir():
        raise UserError(f'{path}: is a folder; expected the name of a file to write')
    if any(os.path.exists(source) and path.samefile(source) for source in inputs):
        raise UserError(f'{file}: is read and would be replaced; expected another file to write')
    if not overwrite:
        raise UserError(f'{file}: exists; expected a new file, or --overwrite')
