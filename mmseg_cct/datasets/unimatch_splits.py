"""The standard splits of PASCAL VOC and Cityscapes, read from UniMatch's lists."""

import os
import re
from pathlib import Path

from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_lists import read_list

from .splits import Split

_CITYSCAPES_SUFFIX = '_leftImg8bit'


def read_unimatch_splits(folder: str | os.PathLike) -> dict[int, Split]:
    """Reads UniMatch's lists: one partition, or all of a data set (``splits/pascal``).

    A partition is a folder with ``labeled.txt`` and ``unlabeled.txt``, two columns each, named
    after the number of labelled images (``92``) or their share (``1_16``). Other folders hold
    another paper's lists and are read only if `folder` is one of them.

    Returns the splits by their number of labelled images, ascending, with names as MMSeg's data
    sets expect them: ``2007_000032``, ``aachen/aachen_000000_000019``. A missing partition, a
    missing or bad list, an image in both lists, or two partitions with the same number of labelled
    images is a `UserError`.
    """
    root = Path(folder)
    partitions = [root]
    if not (root / 'labeled.txt').is_file():
        partitions = sorted(
            path.parent
            for path in root.glob('*/labeled.txt')
            if re.fullmatch(r'\d+|1_\d+', path.parent.name)
        )
    if not partitions:
        raise UserError(
            folder,
            'no list of UniMatch',
            'labeled.txt and unlabeled.txt, or folders like 92 and 1_16 with them',
        )
    splits: dict[int, Split] = {}
    found: dict[int, Path] = {}
    for path in partitions:
        split = _read_partition(path)
        number = len(split.labeled)
        if number in found:
            raise UserError(
                path,
                f'{number} labelled images, as many as in {found[number]}',
                'one list of a number: name its folder',
            )
        splits[number], found[number] = split, path
    return dict(sorted(splits.items()))


def _read_partition(folder: Path) -> Split:
    split = Split(
        *(
            [_mmseg_name(name) for name in read_list(folder / f'{part}.txt')]
            for part in Split._fields
        )
    )
    if common := set(split.labeled) & set(split.unlabeled):
        raise UserError(folder, f'{min(common)} is in both lists', 'it in one')
    return split


def _mmseg_name(stem: str) -> str:
    if not stem.endswith(_CITYSCAPES_SUFFIX):
        return stem
    name = stem.removesuffix(_CITYSCAPES_SUFFIX)
    city = name.split('_')[0]  # also the name of the image's folder
    return f'{city}/{name}'
