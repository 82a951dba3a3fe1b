"""Output files that are rewritten unless somebody has edited them since."""

import hashlib
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

RECORD = 'annotations.jsonl'


class OwnFiles:
    """Writes files into a folder and records what they hold.

    An existing file with other content was edited or is somebody else's: it stays as it is, and its
    path goes to `kept`.

    Args:
        folder: The folder, which may be missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: list[Path] = []
        self._record = folder / RECORD
        self._known: set[tuple[str, str]] = set()
        if self._record.is_file():
            for line in self._record.read_text(encoding='utf-8').splitlines():
                with suppress(ValueError, TypeError):  # a line cut short by a kill
                    self._known.add(tuple(json.loads(line)))

    @contextmanager
    def open(self, name: str) -> Iterator[io.TextIOWrapper]:
        """Opens a text file for writing; it appears only once it is complete."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f'.{os.getpid()}-{path.name[:50]}.part')
        try:
            with part.open('w', encoding='utf-8', errors='backslashreplace', newline='\n') as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            self._replace(path, part, name)
        finally:
            part.unlink(missing_ok=True)

    def _replace(self, path: Path, part: Path, name: str) -> None:
        new = _digest(part)
        old = _digest(path) if path.exists() else new
        if (name, old) not in self._known and old != new:
            self.kept.append(path)
            return
        if (name, new) not in self._known:  # first: a kill leaves no unrecorded file
            with self._record.open('a', encoding='utf-8') as record:
                record.write(f'\n{json.dumps([name, new])}')
            self._known.add((name, new))
        os.replace(part, path)


def _digest(path: Path) -> str:
    with path.open('rb') as file:
        return hashlib.sha256(file.read()).hexdigest()
