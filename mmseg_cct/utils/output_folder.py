"""A folder that one tool writes into and that an interrupted run resumes."""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from mmseg_cct.errors import UserError

from .files import (
    locked_folder,
    read_record,
    remove_parts,
    require_outside,
    require_own_folder,
    write_record,
)
from .processes import on_first_process


class _Record(NamedTuple):
    """The settings behind the files of a folder, and the input of each by name."""

    made_with: dict[str, Any]
    inputs: dict[str, Any]


class OutputFolder:
    """A folder of files that one tool writes, all with the same settings.

    As a context it is locked, and rid of what a killed run left half written. Connected processes
    enter it together: the first one does the work, and its error is that of all. The folder is new,
    empty, or has the tool's `record`, which must say that all files are `made_with` the same. It is
    none of the `inputs`, nor below one.
    """

    def __init__(
        self,
        path: str | Path,
        record: str,
        inputs: Iterable[str | Path] = (),
        made_with: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = Path(path)
        self._file, self._inputs = Path(path, record), list(inputs)
        # as it will be read back
        self._made_with = None if made_with is None else json.loads(json.dumps(made_with))
        self._held = ExitStack()

    def __enter__(self) -> 'OutputFolder':
        on_first_process(self._lock)
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _lock(self) -> None:
        self.claim()  # first: nothing is written into the folder of others, not even a lock
        self._held.enter_context(locked_folder(self.path, 'another run'))
        remove_parts(self.path, '**/')

    def remaining(self, inputs: Mapping[str, Any], subfolder: str) -> list[str]:
        """Lists the names whose file `subfolder/NAME.png`, which is written last, is missing.

        Such files that were made from another input than now are removed. `inputs` says what each
        name's files are made from, in types that JSON keeps. Those of the first process count.
        """
        return on_first_process(lambda: self._remaining(inputs, subfolder))

    def _remaining(self, inputs: Mapping[str, Any], subfolder: str) -> list[str]:
        record = self._read()
        for name, content in inputs.items():
            if record.inputs.get(name) != content:
                Path(self.path, subfolder, f'{name}.png').unlink(missing_ok=True)
        write_record(self._file, record._replace(inputs={**record.inputs, **inputs}))
        return [name for name in inputs if not Path(self.path, subfolder, f'{name}.png').exists()]

    def _read(self) -> _Record:
        return read_record(self._file, _Record, 'what the folder was made with: name another one')

    def claim(self) -> None:
        """Makes the folder with its record, or checks that it is the tool's own; takes no lock."""
        require_outside(self.path, self._inputs, '--out')
        require_own_folder(self.path, self._file.name)
        if not self._file.exists():
            write_record(self._file, _Record(self._made_with or {}, {}))
        recorded, current = self._read().made_with, self._made_with
        if current is None:
            return
        for key in {**current, **recorded}:
            before, now = recorded.get(key), current.get(key)
            if now != before:
                problem = f'{self.path} was made with {key}={before}, now it is {now}'
                raise UserError('--out', problem, 'the same, or another folder')


def file_stamp(path: str | os.PathLike) -> list[int] | None:
    """Returns size and mtime in ns, which change when a file is replaced; None if not local."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return [stat.st_size, stat.st_mtime_ns]
