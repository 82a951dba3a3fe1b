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


def draw_split(
    candidates: Sequence[str], num_labeled: int, seed: int = 0, names: Sequence[str] | None = None
) -> Split:
    """Draws the labelled images among `candidates`; all other `names` are unlabelled.

    By default the candidates are all names. Each list keeps the order of its source. Splits with
    the same seed are nested: a larger one labels all images that a smaller one labels. A number
    outside [1, number of candidates] is a `UserError`.
    """
    if not 1 <= num_labeled <= len(candidates):
        raise UserError(
            'number of labelled images',
            num_labeled,
            f'1 to {len(candidates)}, the images to draw from',
        )
    # NumPy promises not to change RandomState, so a seed means the same list in every version.
    order = np.random.RandomState(seed).permutation(len(candidates))
    labeled = [candidates[index] for index in sorted(order[:num_labeled])]
    drawn = set(labeled)
    return Split(
        labeled, [name for name in (candidates if names is None else names) if name not in drawn]
    )
