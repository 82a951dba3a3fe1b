"""Output files that are rewritten unless somebody has edited them since."""

import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mmseg_cct.utils.files import append_line, part_of, read_lines

from ..contours import TracedImage
from ..shapes import Colour

RECORD = 'annotations.jsonl'


class _Written(NamedTuple):
    """A file that was written, and the digest of what it held."""

    name: str
    digest: str


class OwnFiles:
    """Writes files into a folder, which may be missing, and records what they hold.

    An existing file with other content was edited or is somebody else's: it stays as it is, and its
    path goes to `kept`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: list[Path] = []
        self._record = folder / RECORD
        is_there = self._record.is_file()
        self._known = set(read_lines(self._record, _Written)) if is_there else set()

    @contextmanager
    def open(self, name: str) -> Iterator[io.TextIOWrapper]:
        """Opens a text file for writing; it appears only once it is complete."""
        path = self.folder / name
        with part_of(path) as part:
            with part.open('w', encoding='utf-8', errors='backslashreplace', newline='\n') as file:
                yield file
            new = _Written(name, _digest(part))
            old = _Written(name, _digest(path)) if os.path.lexists(path) else new
            if old not in self._known and old != new:
                self.kept.append(path)
                part.unlink()
            elif new not in self._known:  # recorded first: a kill leaves no unrecorded file
                append_line(self._record, new._asdict())
                self._known.add(new)


def _digest(path: Path) -> str:
    with path.open('rb') as file:
        return hashlib.sha256(file.read()).hexdigest()


class Export(NamedTuple):
    """What a format writes."""

    files: OwnFiles
    classes: Mapping[str, Colour]
    images: Iterable[TracedImage]  # in one pass
    folder: Path  # the image files are below it
