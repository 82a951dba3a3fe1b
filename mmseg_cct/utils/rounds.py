"""Rounds of labelling: their names, and the record of what each was trained on."""

import os
import re
from pathlib import Path
from typing import NamedTuple

from .files import read_record, write_record

# The record of a training, in its work directory.
LABELS = 'labels.json'
_EXPECTED = 'the labelled images of a training, as it began'


def next_round(path: Path) -> Path:
    """Names the file or folder of the next round: `mine-round2`, then `mine-round3`."""
    if path.name in ('', '..'):
        path = path.resolve()
    suffix = '.py' if path.suffix == '.py' else ''  # a folder's name may have a dot, too
    stem, number = path.name.removesuffix(suffix), 1
    if match := re.fullmatch(r'(.+)-round([0-9]+)', stem):
        stem, number = match[1], int(match[2])
    return path.with_name(f'{stem}-round{number + 1}{suffix}')


class Labels(NamedTuple):
    """The images of a training as it began.

    Attributes:
        labeled: Sorted paths of the labelled images.
        unlabeled: Number of unlabelled images.
        files: Size and mtime of each labelled image and mask, by path below their common folder.
        digest: Hash of the unlabelled images' names and sizes; empty if there are none.
    """

    labeled: list[str]
    unlabeled: int
    files: dict[str, list[int]] = {}
    digest: str = ''

    def changes(self, now: 'Labels') -> str:
        """Names the files that differ in a later record of the same labelled images."""
        before = {name: self.files[name] for name in now.files if name in self.files}
        found = [name for name, stamp in before.items() if stamp != now.files[name]]
        if len(found) == len(before):  # copied to another disk, so only the sizes tell
            found = [name for name, stamp in before.items() if stamp[:1] != now.files[name][:1]]
        more = f' and {len(found) - 3} more' if found[3:] else ''
        parts = [f'{", ".join(found[:3])}{more}'] if found else []
        if self.digest and now.digest and self.digest != now.digest:
            numbers = f'{self.unlabeled} then, {now.unlabeled} now'
            parts.append(f'the names or sizes of the unlabelled images ({numbers})')
        return ' and '.join(parts)


def record_labels(work_dir: str | os.PathLike, labels: Labels) -> None:
    """Records what a training begins with."""
    write_record(Path(work_dir, LABELS), labels)


def read_labels(work_dir: str | os.PathLike) -> Labels | None:
    """Reads what a training began with; None if there is no record."""
    record = Path(work_dir, LABELS)
    return read_record(record, Labels, _EXPECTED) if record.is_file() else None
