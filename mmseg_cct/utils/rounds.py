"""Rounds of labelling: their names, and the record of what each was trained on."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from .files import write_text

# A training's record of its labelled images, in its work directory: a path a line.
LABELED_IMAGES = 'labeled_images.txt'


def next_round(path: Path) -> Path:
    """Names the file or folder of the next round: `mine-round2`, then `mine-round3`."""
    suffix = '.py' if path.suffix == '.py' else ''  # a folder's name may have a dot, too
    stem, number = path.name.removesuffix(suffix), 1
    if match := re.fullmatch(r'(.+)-round([0-9]+)', stem):
        stem, number = match[1], int(match[2])
    return path.with_name(f'{stem}-round{number + 1}{suffix}')


def record_labeled(work_dir: str | os.PathLike, paths: Iterable[str]) -> None:
    """Records the labelled images of a training."""
    write_text(Path(work_dir, LABELED_IMAGES), ''.join(f'{path}\n' for path in sorted(paths)))


def read_labeled(work_dir: str | os.PathLike) -> list[str] | None:
    """Reads the labelled images of a training, sorted; None if there is no record."""
    record = Path(work_dir, LABELED_IMAGES)
    if not record.is_file():
        return None
    return record.read_text(encoding='utf-8').split('\n')[:-1]
