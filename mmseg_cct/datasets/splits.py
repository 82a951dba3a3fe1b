"""Splits into labelled and unlabelled images: drawn by a seed, or read from published lists."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mmseg_cct.datasets.files.image_files import read_list
from mmseg_cct.errors import UserError


class Split(NamedTuple):
    """The two lists of a semi-supervised training: names of images."""

    labeled: list[str]  # those whose masks are used
    unlabeled: list[str]  # the others


def draw_split(
    candidates: Sequence[str], num_labeled: int, seed: int = 0, names: Sequence[str] | None = None
) -> Split:
    """Draws the labelled images among `candidates`; all other `names` are unlabelled.

    By default the candidates are all names. Each list keeps the order of its source. Splits with
    the same seed are nested: a larger one labels all images that a smaller one labels.

    Raises:
        UserError: If the number is outside [1, number of candidates].
    """
    if not 1 <= num_labeled <= len(candidates):
        expected = f'1 to {len(candidates)}, the images to draw from'
        raise UserError('number of labelled images', num_labeled, expected)
    # NumPy promises not to change RandomState, so a seed means the same list in every version.
    order = np.random.RandomState(seed).permutation(len(candidates))
    labeled = [candidates[index] for index in sorted(order[:num_labeled])]
    drawn = set(labeled)
    names = candidates if names is None else names
    return Split(labeled, [name for name in names if name not in drawn])


def read_voc_lists(voc_root: str | os.PathLike) -> tuple[list[str], list[str]]:
    """Reads VOC's train list and the trainaug list that MMSeg's ``voc_aug.py`` writes.

    The labelled images are drawn among the first (1464), whose masks alone are VOC's own; all of
    them give the paper's main setting. The second (10582) holds the first. Validation images are
    left out.

    Raises:
        UserError: If a list is missing.
    """
    lists = Path(voc_root, 'ImageSets', 'Segmentation')
    train, val, trainaug = (read_list(lists / f'{n}.txt') for n in ('train', 'val', 'trainaug'))
    held = set(val)
    return train, [name for name in dict.fromkeys([*train, *trainaug]) if name not in held]


def read_public_splits(folder: str | os.PathLike) -> dict[int, Split]:
    """Reads the lists of the public CCT code (its folder ``dataloaders/voc_splits``).

    Returns the splits of ``{n}_train_supervised.txt`` and ``{n}_train_unsupervised.txt`` by ``n``,
    ascending.

    Raises:
        UserError: If there is no list at all, or only one of a pair.
    """
    root = Path(folder)
    matches = (re.fullmatch(r'(\d+)_train_supervised\.txt', path.name) for path in root.glob('*'))
    numbers = sorted(int(match[1]) for match in matches if match)
    if not numbers:
        expected = '{n}_train_supervised.txt and {n}_train_unsupervised.txt'
        raise UserError(folder, 'no list of the public code', expected)
    parts = 'supervised', 'unsupervised'
    return {n: Split(*(read_list(root / f'{n}_train_{p}.txt') for p in parts)) for n in numbers}


def read_unimatch_splits(folder: str | os.PathLike) -> dict[int, Split]:
    """Reads UniMatch's lists: one partition, or all of a data set (``splits/pascal``).

    A partition is a folder with ``labeled.txt`` and ``unlabeled.txt``, two columns each, named
    after the number of labelled images (``92``) or their share (``1_16``). Other folders hold
    another paper's lists and are read only if `folder` is one of them.

    Returns the splits by their number of labelled images, ascending, with names as MMSeg's data
    sets expect them: ``2007_000032``, ``aachen/aachen_000000_000019``.

    Raises:
        UserError: If there is no partition, a list is missing or bad, or an image is in both lists.
    """
    root = Path(folder)
    partitions = [root]
    if not (root / 'labeled.txt').is_file():
        folders = sorted(path.parent for path in root.glob('*/labeled.txt'))
        partitions = [path for path in folders if re.fullmatch(r'\d+|1_\d+', path.name)]
    if not partitions:
        expected = 'labeled.txt and unlabeled.txt, or folders like 92 and 1_16 with them'
        raise UserError(folder, 'no list of UniMatch', expected)
    splits: dict[int, Split] = {}
    for path in partitions:
        split = Split(*(read_list(path / f'{part}.txt') for part in Split._fields))
        # MMSeg's names of Cityscapes begin with the city.
        city = re.compile(r'^(([^_]+)_.*)_leftImg8bit$')
        split = Split(*([city.sub(r'\2/\1', name) for name in part] for part in split))
        if common := set(split.labeled) & set(split.unlabeled):
            raise UserError(path, f'{min(common)} is in both lists', 'it in one')
        splits[len(split.labeled)] = split
    return dict(sorted(splits.items()))
