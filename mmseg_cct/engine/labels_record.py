"""`labels.json` in a work directory: the images that a training began with."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mmseg_cct.datasets.files.leaks import describe_leaks
from mmseg_cct.datasets.leaves import image_paths
from mmseg_cct.utils.files import read_record, write_record

LABELS = 'labels.json'


class Labels(NamedTuple):
    """The images of a training as it began."""

    labeled: list[str]  # sorted paths
    unlabeled: int  # how many
    validated: Sequence[str] = ()  # sorted paths
    pool: str = ''  # a checksum of the unlabelled ones' names


def read_labels(work_dir: str | os.PathLike) -> Labels | None:
    """Reads what a training began with; None if there is no record."""
    record = Path(work_dir, LABELS)
    if not record.is_file():
        return None
    return read_record(record, Labels, 'the labelled images of a training, as it began')


def write_labels(work_dir: str | os.PathLike, labels: Labels) -> None:
    """Records what a training begins with."""
    write_record(Path(work_dir, LABELS), labels)


def checksum(names: Iterable[str]) -> str:
    """Returns what two lists have in common only if they hold the same, in any order."""
    return hashlib.sha256('\n'.join(sorted(names)).encode(errors='replace')).hexdigest()[:16]


def trained_images(labels: Labels | None, dataset: Any) -> Iterator[str]:
    """Says in a line how many images of a test set a training began with, as labelled ones."""
    trained = labels.labeled if labels else ()
    return describe_leaks({'trained on': trained, 'tested on': image_paths(dataset)})


def below_folder(paths: Sequence[str]) -> list[str]:
    """Returns paths from their common folder on, which may have moved with its data."""
    working_dir = os.path.join(os.getcwd(), '')
    absolute = [path if os.path.isabs(path) else working_dir + path for path in paths]
    # a folder's name may begin like another's: only whole names are cut off
    start = os.path.commonprefix(absolute)  # noqa: RUF071 (of characters)
    first = len(os.path.join(os.path.dirname(start), ''))
    return [path[first:] for path in absolute]
