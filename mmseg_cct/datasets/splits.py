"""Seeded splits into labelled and unlabelled images."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mmseg_cct.errors import UserError


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

    Both lists keep the order of `names`. Splits with the same seed are nested: a larger one labels
    all images that a smaller one labels. A number outside [1, number of images] is a `UserError`.
    """
    if not 1 <= num_labeled <= len(names):
        raise UserError(
            f'number of labelled images: {num_labeled}; expected 1 to {len(names)}, '
            'the images to draw from'
        )
    # NumPy promises not to change RandomState, so a seed means the same list in every version.
    order = np.random.RandomState(seed).permutation(len(names))
    drawn = set(order[:num_labeled].tolist())
    return Split(
        labeled=[name for index, name in enumerate(names) if index in drawn],
        unlabeled=[name for index, name in enumerate(names) if index not in drawn],
    )


def draw_split_among(
    candidates: Sequence[str], names: Sequence[str], num_labeled: int, seed: int = 0
) -> Split:
    """Draws the labelled images among `candidates`; all other `names` are unlabelled.

    Each list keeps the order of its source. Raises like `draw_split`.
    """
    labeled = draw_split(candidates, num_labeled, seed).labeled
    drawn = set(labeled)
    return Split(labeled, [name for name in names if name not in drawn])
