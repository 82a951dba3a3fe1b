"""From class activation maps to labels, by two thresholds (section 3.3)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mmseg_cct.errors import UserError

IGNORE_INDEX = 255


class Thresholds(NamedTuple):
    """Between which scores a pixel stays without a label.

    Attributes:
        background: θ_bg; a pixel whose every score is below is background.
        foreground: θ_fg; a pixel with a score above has the class of the highest one.
    """

    background: float = 0.05
    foreground: float = 0.30

    def check(self) -> 'Thresholds':
        """Checks the order of the two.

        Returns:
            The thresholds.

        Raises:
            UserError: If they are out of range or in the wrong order.
        """
        if not 0 <= self.background <= self.foreground <= 1:
            raise UserError(
                f'pseudo_labels.thresholds: background={self.background}, foreground='
                f'{self.foreground}; expected 0 <= background <= foreground <= 1'
            )
        return self


def labels_from_maps(
    maps: np.ndarray,
    class_ids: Sequence[int],
    background: int | None,
    thresholds: Thresholds,
) -> np.ndarray:
    """Labels the pixels whose scores are high or low enough.

    Args:
        maps: `(C_i, H, W)` in [0, 1], one map for each class in the image.
        class_ids: C_i label ids of these classes.
        background: Label id of the background; None where the label space has none, then low
            scores are ignored too.
        thresholds: θ_bg and θ_fg.

    Returns:
        `(H, W)` uint8 label ids, 255 where there is none.
    """
    ids = np.array([IGNORE_INDEX if background is None else background, *class_ids], np.uint8)
    first, score = strongest(maps)
    labels = np.where(score > thresholds.foreground, ids[first], np.uint8(IGNORE_INDEX))
    return np.where(score < thresholds.background, ids[0], labels)


def strongest(maps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finds the highest map at each pixel.

    Args:
        maps: `(C_i, H, W)`.

    Returns:
        `(H, W)` index of the highest map, from 1, and its score; 0 and 0 where there are no maps.
    """
    if not len(maps):
        return np.zeros(maps.shape[1:], np.intp), np.zeros(maps.shape[1:], np.float32)
    return maps.argmax(0) + 1, maps.max(0)
