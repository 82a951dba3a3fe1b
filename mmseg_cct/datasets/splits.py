"""Lists of labelled and unlabelled images: drawn by a seed, read and written as text files."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_files import find_images


class Split(NamedTuple):
    """The two lists of a semi-supervised training.

    Attributes:
        labeled: Names of the images whose masks are used.
        unlabeled: Names of the other images.
    """

    labeled: list[str]
    unlabeled: list[str]


def draw_split(names: Sequence[str], num_labeled: int, seed: int = 0) -> Split:
    """Draws the labelled images of a set; all others are unlabelled.

    The splits of one seed are nested: the images of a smaller one are among those of a larger one.

    Args:
        names: Names of all images of the set.
        num_labeled: Number of images to draw.
        seed: Seed of the draw.

    Returns:
        The two lists, each in the order of `names`.

    Raises:
        UserError: If there are not so many images, or none would be drawn.
    """
    if not 1 <= num_labeled <= len(names):
        raise UserError(
            f'number of labelled images: {num_labeled}; expected 1 to {len(names)}, '
            'the images there are'
        )
    # RandomState is frozen by NumPy's own promise: a seed means the same list in every version.
    order = np.random.RandomState(seed).permutation(len(names))
    drawn = set(order[:num_labeled].tolist())
    return Split(
        labeled=[name for index, name in enumerate(names) if index in drawn],
        unlabeled=[name for index, name in enumerate(names) if index not in drawn],
    )


def draw_voc_split(
    train: Sequence[str], trainaug: Sequence[str], num_labeled: int, seed: int = 0
) -> Split:
    """Draws the labelled images of PASCAL VOC from its original train list.

    Args:
        train: Names of the original train list (1464 images).
        trainaug: Names of the augmented train list (10582 images).
        num_labeled: Number of labelled images; all of `train` makes the paper's main setting.
        seed: Seed of the draw.

    Returns:
        The drawn images, in the order of `train`, and the rest of `train` and `trainaug` together.

    Raises:
        UserError: If the train list has not so many images.
    """
    if num_labeled > len(train):
        raise UserError(
            f'number of labelled images: {num_labeled}; expected at most {len(train)}, the '
            'original train list of VOC: the masks of the other trainaug images are not its own'
        )
    labeled, _ = draw_split(train, num_labeled, seed)
    drawn = set(labeled)
    everything = dict.fromkeys([*train, *trainaug])
    return Split(labeled, [name for name in everything if name not in drawn])


def read_voc_lists(voc_root: str | os.PathLike) -> tuple[list[str], list[str]]:
    """Reads the train and trainaug lists of PASCAL VOC 2012.

    The trainaug list is ``trainaug.txt`` or ``aug.txt`` as MMSeg's ``voc_aug.py`` writes them;
    where neither is there, the masks in ``SegmentationClassAug`` tell. Validation images never
    count.

    Args:
        voc_root: The folder ``VOC2012``, or ``VOCdevkit`` around it.

    Returns:
        The original train list and the augmented one.

    Raises:
        UserError: If a list is missing.
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
                f'{lists}: no trainaug.txt or aug.txt, and no folder {masks}; expected one of the '
                'three, as tools/dataset_converters/voc_aug.py of MMSegmentation writes them'
            )
        trainaug = list(find_images(masks, '.png'))
    return train, [name for name in dict.fromkeys([*train, *trainaug]) if name not in val]


def read_list(path: str | os.PathLike) -> list[str]:
    """Reads a list of images.

    Two formats are understood: a name per line, and the public CCT code's two columns, image and
    mask (``/JPEGImages/2007_000032.jpg /SegmentationClassAug/2007_000032.png``), of which the stem
    of the image is kept. Empty lines are skipped.

    Args:
        path: The text file.

    Returns:
        The names in the order of the file.

    Raises:
        UserError: If the file is missing, is not text, is empty, or names an image twice.
    """
    expected = 'expected a text file with one image name per line'
    try:
        text = Path(path).read_text(encoding='utf-8')
    except FileNotFoundError:
        raise UserError(
            f'{path}: no such file; {expected} (tools/make_splits.py makes such lists)'
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f'{path}: cannot be read ({error}); {expected}') from None
    names = [_image_name(line) for line in text.splitlines() if line.strip()]
    if not names:
        raise UserError(f'{path}: the list is empty; {expected}')
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise UserError(f'{path}: {name} is listed twice; expected every image once')
        seen.add(name)
    return names


def _image_name(line: str) -> str:
    # A single column may hold spaces, so two columns are known by their two file extensions.
    two_columns = re.fullmatch(r'(\S+\.\w+)\s+\S+\.\w+', line.strip())
    return PurePosixPath(two_columns[1]).stem if two_columns else line.strip()


def write_list(path: str | os.PathLike, names: Iterable[str]) -> None:
    """Writes a list of images, one name per line.

    Args:
        path: The text file; its folder is made where it is missing.
        names: The names.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(''.join(f'{name}\n' for name in names), encoding='utf-8')


def read_public_splits(folder: str | os.PathLike) -> dict[int, Split]:
    """Reads the lists of the public CCT code (its folder ``dataloaders/voc_splits``).

    Args:
        folder: Holds ``{n}_train_supervised.txt`` and ``{n}_train_unsupervised.txt``.

    Returns:
        The splits by their number of labelled images ``n``, ascending.

    Raises:
        UserError: If there is no such list, or one of a pair is missing.
    """
    root = Path(folder)
    numbers = sorted(
        int(match[1])
        for path in root.glob('*_train_supervised.txt')
        if (match := re.fullmatch(r'(\d+)_train_supervised\.txt', path.name))
    )
    if not numbers:
        raise UserError(
            f'{folder}: no list of the public code; expected {{n}}_train_supervised.txt and '
            '{n}_train_unsupervised.txt'
        )
    return {
        number: Split(
            labeled=read_list(root / f'{number}_train_supervised.txt'),
            unlabeled=read_list(root / f'{number}_train_unsupervised.txt'),
        )
        for number in numbers
    }


def resolve_list(ann_file: str) -> str:
    """Finds a list file that a config names.

    Lists kept in the project are named relative to the working directory, lists of a data set
    relative to its root; the first that exists counts.

    Args:
        ann_file: Path as the config gives it; may be empty.

    Returns:
        The absolute path where the file is in the working directory, else `ann_file` unchanged,
        which the data set joins to its root.
    """
    if ann_file and not os.path.isabs(ann_file) and os.path.isfile(ann_file):
        return os.path.abspath(ann_file)
    return ann_file
