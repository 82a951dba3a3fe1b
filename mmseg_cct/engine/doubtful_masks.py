"""Fits the closed form to the masks of a folder, and judges each mask by the others."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from mmseg_cct.datasets.files.images import read_mask
from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import counted

from .closed_form import (
    FEWEST_TO_CHOOSE,
    Discriminant,
    Moments,
    choose,
    fit,
    ious_of,
    leave_one_out,
)
from .frozen_features import WhitenedFeatures, read_picture
from .metrics.scores import confusion_of

FEWEST = 5  # masks to say of one that the others contradict it
# At these, fewer than one set of right masks in twenty has one that counts as doubtful, and half
# of the masks of another image do (docs/experiments.md).
_SCORE, _RATIO = 2.0, 1.6


class JudgedMask(NamedTuple):
    """What the other masks say of one."""

    name: str  # of its image
    score: float  # from 0 to 5, see `LeftOut`
    is_doubtful: bool
    expected: np.ndarray  # classes (h, w), on a grid over the image


class FittedMasks(NamedTuple):
    """The closed form of all masks of a folder, and what it is worth."""

    discriminant: Discriminant
    of_others: dict[str, Discriminant]  # by the name of an image, fitted to the masks of all others
    judged: list[JudgedMask]  # the most doubtful first
    confusion: np.ndarray  # (C, C) cells of left-out images, by label and prediction

    @property
    def ious(self) -> np.ndarray:
        """IoU by class `(C,)` of images that the fit had not seen; NaN for a class in no mask."""
        return ious_of(self.confusion)

    @property
    def worth(self) -> str:
        """What the masks are worth, in a line."""
        number = counted(len(self.judged), 'mask')
        if len(self.judged) < FEWEST_TO_CHOOSE:
            return f'{number}: what they are worth cannot be told from fewer than three'
        miou = 100 * np.nanmean(self.ious)
        return f'{number} give mIoU {miou:.1f} on one that is left out, without any training'


def fit_masks(
    features: WhitenedFeatures,
    images: Mapping[str, str],
    masks: Mapping[str, str],
    num_classes: int,
) -> FittedMasks:
    """Fits the closed form to the masks, its settings chosen by leaving out one image at a time.

    `images` and `masks` are paths by the name of the image.

    Raises:
        UserError: If one of them cannot be read.
    """
    grids, points, labels = [], [], []
    labeled = features.of_files([images[name] for name in masks])
    for maps, path in zip(tqdm(labeled, 'masks', len(masks), disable=None), masks.values()):
        if isinstance(maps, UserError):
            raise maps
        grids.append(maps.shape[:2])
        points.append(maps.reshape(-1, maps.shape[-1]))
        labels.append(_at_cells(read_mask(path), grids[-1]))
    moments = [Moments.of(*image, num_classes) for image in zip(points, labels)]
    choice = choose(points, labels, moments)
    judged, confusion = [], np.zeros((num_classes, num_classes), np.int64)
    left_out = leave_one_out(points, labels, moments, choice)
    doubtful = are_doubtful([image.score for image in left_out])
    for name, image, ids, grid, is_doubtful in zip(masks, left_out, labels, grids, doubtful):
        confusion += confusion_of(ids, image.expected, num_classes)
        judged.append(JudgedMask(name, image.score, is_doubtful, image.expected.reshape(grid)))
    judged.sort(key=lambda mask: -mask.score)
    total = Moments(*(np.sum(part, 0) for part in zip(*moments)))
    of_others = {name: image.discriminant for name, image in zip(masks, left_out)}
    return FittedMasks(fit(total, choice), of_others, judged, confusion)


def are_doubtful(scores: Sequence[float]) -> list[bool]:
    """Tells which of five scores or more are high, and far above the median of the others."""
    if len(scores) < FEWEST:
        return [False] * len(scores)
    medians = [np.median(np.delete(scores, index)) for index in range(len(scores))]
    return [
        score > _SCORE and score > _RATIO * (median + 0.5) for score, median in zip(scores, medians)
    ]


def contradictions(images: Mapping[str, str], masks: Mapping[str, str]) -> list[tuple[str, str]]:
    """Finds pairs of images with equal pixels but different masks, by their names.

    Of several, each is compared with the first.
    """
    first_names: dict[bytes, str] = {}
    pairs = []
    for name in masks:
        picture = read_picture(images[name])
        digest = hashlib.sha256(f'{picture.shape}'.encode() + picture.tobytes()).digest()
        twin = first_names.setdefault(digest, name)
        if twin != name and not np.array_equal(read_mask(masks[name]), read_mask(masks[twin])):
            pairs.append((twin, name))
    return pairs


def _at_cells(ids: np.ndarray, grid: tuple[int, int]) -> np.ndarray:
    """Class ids `(P,)` at the middle of each cell of a grid over a mask `(H, W)`."""
    (rows, height), (columns, width) = zip(grid, ids.shape)
    row_indices = (np.arange(rows) * 2 + 1) * height // (2 * rows)
    column_indices = (np.arange(columns) * 2 + 1) * width // (2 * columns)
    return ids[np.ix_(row_indices, column_indices)].astype(np.int64).reshape(-1)
