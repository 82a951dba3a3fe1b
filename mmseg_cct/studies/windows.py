"""Chooses the windows of an image that are worth labelling."""

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np

from mmseg_cct.datasets.files.labels import IGNORE_INDEX


class Window(NamedTuple):
    """A rectangle of pixels."""

    left: int
    top: int
    width: int
    height: int


def highest_windows(values: np.ndarray, number: int, side: int) -> list[Window]:
    """Finds up to `number` squares of a map `(H, W)` with the highest means, without overlap.

    `side` is their side length in pixels, cut to that of the map. The highest comes first.
    """
    height, width = (min(side, length) for length in values.shape)
    # The mean of the window whose top left corner is a pixel.
    sums = cv2.integral(values.astype(np.float64))
    means = (
        sums[height:, width:] - sums[:-height, width:] - sums[height:, :-width]
        + sums[:-height, :-width]
    ) / (height * width)  # fmt: skip
    found: list[Window] = []
    while len(found) < number and np.isfinite(means).any():
        top, left = (int(i) for i in np.unravel_index(means.argmax(), means.shape))
        found.append(Window(left, top, width, height))
        means[
            max(top - height + 1, 0) : top + height, max(left - width + 1, 0) : left + width
        ] = -np.inf
    return found


def keep_windows(labels: np.ndarray, windows: Sequence[Window]) -> np.ndarray:
    """Ignores all class ids `(H, W)` outside the windows, if there are any."""
    if not windows:
        return labels
    kept = np.full_like(labels, IGNORE_INDEX)
    for left, top, width, height in windows:
        part = np.s_[top : top + height, left : left + width]
        kept[part] = labels[part]
    return kept
