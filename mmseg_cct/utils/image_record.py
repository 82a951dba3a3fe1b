"""Counts of written, skipped and failed images, and what an output folder was made from."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmseg_cct.errors import UserError

from .files import claim_output_folder, read_json, write_atomic
from .image_files import explain_unreadable

# Records the inputs of the files in an output folder, by name of the image.
INPUTS = 'inputs.json'


@dataclass
class ImageCounts:
    """Counts of written, skipped and failed images.

    Attributes:
        written: Number of images whose files were written.
        skipped: Number of images that an earlier run had finished.
        failed: A line for each image that could not be read.
    """

    written: int = 0
    skipped: int = 0
    failed: list[str] = field(default_factory=list)

    def add_unreadable(self, path: str | Path, error: Exception) -> None:
        """Counts an image that could not be read."""
        self.failed.append(explain_unreadable(path, 'image', error))

    @classmethod
    def merged(cls, parts: Sequence['ImageCounts']) -> 'ImageCounts':
        """Adds up the counts of several processes; each has the total number of skipped images."""
        failed = sorted(line for part in parts for line in part.failed)
        return cls(sum(part.written for part in parts), parts[0].skipped, failed)

    def describe(self, out: str) -> str:
        """Gives the counts in one line; `out` is the output folder."""
        return (
            f'{self.written} written to {out}, {self.skipped} there already, '
            f'{len(self.failed)} unreadable'
        )


def record_origin(
    record: Path, origin: Mapping[str, Any], content: str, data_folders: Iterable[Path] = ()
) -> None:
    """Records the settings that an output folder is made with, so that it never mixes two.

    A folder made with another `origin`, or not by this tool, is a `UserError`. `content` says in
    the message what the folder holds.
    """
    claim_output_folder(record.parent, record.name, data_folders)
    earlier = read_json(record)
    if not isinstance(earlier, dict):
        raise UserError(f'{record}: damaged; expected the settings of an earlier run')
    if not earlier:  # claimed just now
        write_atomic(record, (json.dumps(origin, indent=2) + '\n').encode())
        return
    changed = [key for key in {**origin, **earlier} if origin.get(key) != earlier.get(key)]
    if changed:
        key = changed[0]
        raise UserError(
            f'--out: {record.parent} holds {content} made with {key}={earlier.get(key)}, now it '
            f'is {origin.get(key)}; expected the same, or another folder'
        )


def file_stamp(path: str | os.PathLike) -> list[int] | None:
    """Returns size and mtime in ns, which change when a file is replaced; None if not local."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return [stat.st_size, stat.st_mtime_ns]


def forget_changed(
    out: str | Path, inputs: Mapping[str, Any], outputs: str, suffix: str = '.png'
) -> list[str]:
    """Removes `outputs/NAME.png`, which marks a finished image, if its input changed.

    Records the new `inputs`: what each image's files are made from, by name, in types that JSON
    keeps. Returns the names of images that are no longer an input but whose files still exist.
    """
    record = Path(out, INPUTS)
    earlier = read_json(record) if record.exists() else inputs
    if not isinstance(earlier, dict):  # damaged, so nothing is known of any file
        earlier = {}
    for name, content in inputs.items():
        if earlier.get(name) != content:
            Path(out, outputs, f'{name}{suffix}').unlink(missing_ok=True)
    write_atomic(record, (json.dumps({**earlier, **inputs}) + '\n').encode())
    return [
        name
        for name in sorted(earlier.keys() - inputs.keys())
        if Path(out, outputs, f'{name}{suffix}').exists()
    ]
