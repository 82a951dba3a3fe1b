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
    """The images of a training as it began: sorted labelled paths, number of unlabelled ones."""

    labeled: list[str]
    unlabeled: int


def record_labels(work_dir: str | os.PathLike, labels: Labels) -> None:
    """Records what a training begins with."""
    write_record(Path(work_dir, LABELS), labels)


def read_labels(work_dir: str | os.PathLike) -> Labels | None:
    """Reads what a training began with; None if there is no record."""
    record = Path(work_dir, LABELS)
    return read_record(record, Labels, _EXPECTED) if record.is_file() else None
