"""Pseudo labels from class activation maps by two thresholds (section 3.3)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mmseg_cct.errors import UserError
from mmseg_cct.utils.labels import IGNORE_INDEX


class Thresholds(NamedTuple):
    """Thresholds of scores; a pixel between the two is ignored."""

    background: float = 0.05  # θ_bg; a pixel with all scores below it is background
    foreground: float = 0.30  # θ_fg; one with a score above it gets the class of its highest score

    def check(self) -> 'Thresholds':
        """Returns the thresholds, unless they are out of [0, 1] or in the wrong order."""
        if not 0 <= self.background <= self.foreground <= 1:
            raise UserError(
                'pseudo_labels.thresholds',
                f'background={self.background}, foreground={self.foreground}',
                '0 <= background <= foreground <= 1',
            )
        return self


def labels_from_maps(
    maps: np.ndarray,
    class_ids: Sequence[int],
    background: int | None,
    thresholds: Thresholds,
) -> np.ndarray:
    """Labels pixels with a score above θ_fg, and those with all scores below θ_bg.

    There is a map `(C_i, H, W)` in [0, 1] for each of the C_i label ids in the image. The id of the
    background may be None, which ignores low scores too. Returns label ids `(H, W)` uint8, 255
    where ignored.
    """
    ids = np.array([IGNORE_INDEX if background is None else background, *class_ids], np.uint8)
    first, score = strongest(maps)
    labels = np.where(score > thresholds.foreground, ids[first], np.uint8(IGNORE_INDEX))
    return np.where(score < thresholds.background, ids[0], labels)


def strongest(maps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the index, from 1 on, and the score of the highest map `(C_i, H, W)` at each pixel.

    Both are `(H, W)`, and all zeros if there are no maps.
    """
    if not len(maps):
        return np.zeros(maps.shape[1:], np.intp), np.zeros(maps.shape[1:], np.float32)
    return maps.argmax(0) + 1, maps.max(0)
