"""Splits of PASCAL VOC 2012, drawn from its lists or read from the public CCT code."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_files import find_images
from mmseg_cct.utils.image_lists import read_list

from .splits import Split, draw_split


def draw_voc_split(
    train: Sequence[str], trainaug: Sequence[str], num_labeled: int, seed: int = 0
) -> Split:
    """Draws the labelled images of PASCAL VOC from its original train list (1464 images).

    The rest of `train` and `trainaug` (10582 images) is unlabelled. Labelling all of `train` gives
    the paper's main setting; a larger number is a `UserError`.
    """
    if num_labeled > len(train):
        raise UserError(
            'number of labelled images',
            num_labeled,
            f'at most {len(train)}, the original train list of VOC: the masks of the other '
            'trainaug images are not its own',
        )
    return draw_split(train, num_labeled, seed, list(dict.fromkeys([*train, *trainaug])))


def read_voc_lists(voc_root: str | os.PathLike) -> tuple[list[str], list[str]]:
    """Reads the train and trainaug lists below ``VOC2012``, or below the ``VOCdevkit`` around it.

    The trainaug list is ``trainaug.txt`` or ``aug.txt`` as MMSeg's ``voc_aug.py`` writes them or,
    without either, the names of the masks in ``SegmentationClassAug``. Validation images are left
    out. A missing list is a `UserError`.
    """
    root = Path(voc_root)
    if (root / 'VOC2012').is_dir():
        root = root / 'VOC2012'
    lists = root / 'ImageSets' / 'Segmentation'
    train = read_list(lists / 'train.txt')
    val = set(read_list(lists / 'val.txt'))
    masks = root / 'SegmentationClassAug'
    for name in ('trainaug.txt', 'aug.txt'):
        if (lists / name).is_file():
            trainaug = read_list(lists / name)
            break
    else:
        if not masks.is_dir():
            raise UserError(
                lists,
                f'no trainaug.txt or aug.txt, and no folder {masks}',
                'one of the three, as tools/dataset_converters/voc_aug.py of MMSegmentation '
                'writes them',
            )
        trainaug = list(find_images(masks, '.png'))
    return train, [name for name in dict.fromkeys([*train, *trainaug]) if name not in val]


def read_public_splits(folder: str | os.PathLike) -> dict[int, Split]:
    """Reads the lists of the public CCT code (its folder ``dataloaders/voc_splits``).

    Returns the splits of ``{n}_train_supervised.txt`` and ``{n}_train_unsupervised.txt`` by ``n``,
    ascending. No list at all, or only one of a pair, is a `UserError`.
    """
    root = Path(folder)
    numbers = sorted(
        int(match[1])
        for path in root.glob('*_train_supervised.txt')
        if (match := re.fullmatch(r'(\d+)_train_supervised\.txt', path.name))
    )
    if not numbers:
        raise UserError(
            folder,
            'no list of the public code',
            '{n}_train_supervised.txt and {n}_train_unsupervised.txt',
        )
    return {
        number: Split(
            labeled=read_list(root / f'{number}_train_supervised.txt'),
            unlabeled=read_list(root / f'{number}_train_unsupervised.txt'),
        )
        for number in numbers
    }
