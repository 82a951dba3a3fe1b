"""Measures how wide the objects of each class are in masks."""

from collections import defaultdict
from collections.abc import Sequence

import cv2
import numpy as np

from .labels import is_background

_MASKS = 8  # masks with a class that are measured: enough for a typical width
# Narrower than this, an object is lost between the pixels of a resized image.
SMALLEST = 2.0


class ObjectWidths:
    """Collects the widths of connected objects, from the first masks that show a class.

    `classes` are the names in the order of their ids; the background has no objects.
    """

    def __init__(self, classes: Sequence[str]) -> None:
        self._labels = {i: name for i, name in enumerate(classes) if not is_background(name)}
        self._objects: dict[str, list[np.ndarray]] = defaultdict(list)

    def add(self, ids: np.ndarray) -> None:
        """Measures a mask `(H, W)` of class ids."""
        ids = ids.astype(np.uint8, copy=False)
        present = cv2.calcHist([ids], [0], None, [256], [0, 256]).ravel() > 0
        for label, name in self._labels.items():
            if present[label] and len(self._objects[name]) < _MASKS:
                self._objects[name].append(widths_by_area(ids == label))

    def typical(self) -> dict[str, float]:
        """Returns a width by class: half of the class's pixels are in narrower objects."""
        widths = {}
        for name, objects in self._objects.items():
            area, width = np.concatenate(objects).T
            order = np.argsort(width)
            half = np.searchsorted(np.cumsum(area[order]), area.sum() / 2)
            widths[name] = float(width[order[half]])
        return widths


def widths_by_area(shown: np.ndarray) -> np.ndarray:
    """Returns area and width `(N, 2)` of each object of a mask `(H, W)`, in pixels.

    The width is that of the widest circle inside: a line's thickness, whatever its length.
    """
    part = shown.astype(np.uint8)
    x, y, width, height = cv2.boundingRect(part)
    part = np.pad(part[y : y + height, x : x + width], 1)
    number, parts, stats, _ = cv2.connectedComponentsWithStats(part, connectivity=8)
    depth = cv2.distanceTransform(part, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    ridge = (part > 0) & (depth == cv2.dilate(depth, np.ones((3, 3))))  # few pixels, all maxima
    deepest = np.zeros(number)
    np.maximum.at(deepest, parts[ridge], depth[ridge])
    # The distance is to the centre of the next pixel outside, so a single pixel has 1.
    return np.stack([stats[1:, cv2.CC_STAT_AREA], 2 * deepest[1:] - 1], 1)
