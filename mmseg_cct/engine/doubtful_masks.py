"""Finds masks that the other masks contradict, and equal images with different masks."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mmseg_cct.datasets.files.images import read_mask
from mmseg_cct.errors import UserError

from .frozen_features import Encoder, encode_all, points_of, read_picture
from .probe import leave_one_out, whitening

FEWEST = 5  # masks to judge one by the others
_POOL = 40  # images that features are whitened on: without a mask, if there are fewer with one
_NUM_FEATURES = 96
# At these, fewer than one set of right masks in twenty has one that counts as doubtful, and about a
# fifth of the masks of another image do (docs/experiments.md).
_SCORE, _RATIO = 2.0, 1.8


class JudgedMask(NamedTuple):
    """What the other masks say of one."""

    name: str  # of its image
    score: float  # from 0 to 5, see `LeftOut`
    is_doubtful: bool
    expected: np.ndarray  # classes (h, w), on a grid over the image


def judge_masks(
    encoder: Encoder,
    images: Mapping[str, str],
    masks: Mapping[str, str],
    num_classes: int,
) -> list[JudgedMask]:
    """Judges each mask by a classifier that is fitted to the others; the most doubtful come first.

    `images` and `masks` are paths by the name of the image; images without a mask help to whiten
    the features. Fewer than five masks are a `UserError`.
    """
    if len(masks) < FEWEST:
        raise UserError('masks', f'{len(masks)} of them', f'{FEWEST} or more, to judge each')
    labeled = [images[name] for name in masks]
    unlabeled = [path for name, path in images.items() if name not in masks]
    sample = _evenly(labeled, _POOL) + _evenly(unlabeled, max(_POOL - len(labeled), 0))
    mean, matrix = whitening(np.concatenate(list(points_of(encoder, sample))), _NUM_FEATURES)
    grids, whitened, labels = [], [], []
    for features, path in zip(encode_all(encoder, labeled, 'masks'), masks.values()):
        if isinstance(features, UserError):
            raise features
        grids.append(features.shape[:2])
        whitened.append((features.reshape(-1, len(mean)) - mean) @ matrix)
        labels.append(_at_cells(read_mask(path), grids[-1]))
    judged = leave_one_out(whitened, labels, num_classes)
    doubtful = are_doubtful([each.score for each in judged])
    return sorted(
        (
            JudgedMask(name, each.score, is_doubtful, each.expected.reshape(grid))
            for name, each, is_doubtful, grid in zip(masks, judged, doubtful, grids)
        ),
        key=lambda mask: -mask.score,
    )


def are_doubtful(scores: Sequence[float]) -> list[bool]:
    """Tells which scores are high, and far above the median of the others."""
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


def _evenly(paths: Sequence[str], number: int) -> list[str]:
    """Takes at most a number of paths, evenly spaced."""
    positions = np.linspace(0, len(paths) - 1, min(number, len(paths))).astype(int)
    return [paths[position] for position in positions]


def _at_cells(ids: np.ndarray, grid: tuple[int, int]) -> np.ndarray:
    """Class ids `(P,)` at the middle of each cell of a grid over a mask `(H, W)`."""
    (rows, height), (columns, width) = zip(grid, ids.shape)
    row_indices = (np.arange(rows) * 2 + 1) * height // (2 * rows)
    column_indices = (np.arange(columns) * 2 + 1) * width // (2 * columns)
    return ids[np.ix_(row_indices, column_indices)].astype(np.int64).reshape(-1)
