"""Draws shapes into a mask of class ids.

A pixel belongs to a polygon if its centre lies inside. `cv2.fillPoly` would also fill each pixel
that the outline touches, so that regions side by side would overlap and holes shrink.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import cv2
import numpy as np

from mmseg_cct.datasets.files.labels import IGNORE_INDEX

from .shapes import Shape


class Drawing(NamedTuple):
    """A mask, ids `(H, W)` uint8, and what became of each shape `(N,)`."""

    mask: np.ndarray
    is_lost: np.ndarray  # it has no pixel in the image


def rasterize(
    shapes: Sequence[Shape],
    size: tuple[int, int],
    ids: Mapping[str, int],
    undrawn_id: int,
    unknown: Iterable[np.ndarray] = (),
) -> Drawing:
    """Draws shapes on an image of `size` (width, height).

    Shapes with a higher z cover the others, at equal z later ones, and without an order small ones
    cover large ones. `undrawn_id` is the id where there is no shape; it is ignored in the extents
    of what is `unknown` and of shapes without a pixel.
    """
    mask = np.full(size[::-1], undrawn_id, np.uint8)
    is_drawn = np.zeros(size[::-1], bool)
    is_lost = np.zeros(len(shapes), bool)

    def height(index: int) -> tuple[float, float]:
        z = shapes[index].z
        return (0, -_area(shapes[index])) if z is None else (z, 0)

    for index in sorted(range(len(shapes)), key=height):  # from below
        shape = shapes[index]
        region, (left, top) = draw(shape, size)
        where = np.s_[top : top + region.shape[0], left : left + region.shape[1]]
        mask[where][region] = IGNORE_INDEX if shape.label is None else ids[shape.label]
        is_drawn[where] |= region
        is_empty = shape.mask is not None and not shape.mask.any()  # also in the tool
        is_lost[index] = not (region.any() or is_empty)

    # An object is where something was left out, so that is no background
    for extent in (*unknown, *(shapes[index].extent for index in np.flatnonzero(is_lost).tolist())):
        first = np.floor(extent[0])
        ends = np.maximum(np.ceil(extent[1]), first + 1)  # a point is a pixel
        (left, top), (right, bottom) = np.clip([first, ends], 0, size).astype(int)
        mask[top:bottom, left:right][~is_drawn[top:bottom, left:right]] = IGNORE_INDEX
    return Drawing(mask, is_lost)


def draw(shape: Shape, size: tuple[int, int]) -> tuple[np.ndarray, tuple[int, int]]:
    """Draws the part of a shape in the image: `(h, w)` bool, and its corner's column and row."""
    if shape.mask is None:
        return _fill(shape.polygons, *size)
    (left, top), (width, height) = shape.offset, size
    x, y = max(left, 0), max(top, 0)
    inside = shape.mask[y - top : max(height - top, 0), x - left : max(width - left, 0)]
    return inside, (x, y)


def draw_whole(shape: Shape, size: tuple[int, int]) -> np.ndarray:
    """Draws a shape on the whole image: `(H, W)` bool."""
    region, (left, top) = draw(shape, size)
    whole = np.zeros(size[::-1], bool)
    whole[top : top + region.shape[0], left : left + region.shape[1]] = region
    return whole


def _area(shape: Shape) -> float:
    if shape.mask is not None:
        return float(np.count_nonzero(shape.mask))
    # From the first point on: 32 bits are too coarse for small shapes far from the corner
    return sum(cv2.contourArea((ring - ring[0]).astype(np.float32)) for ring in shape.polygons)


def _fill(
    rings: Sequence[np.ndarray], width: int, height: int
) -> tuple[np.ndarray, tuple[int, int]]:
    """Fills rings by the even-odd rule: going down a column, each crossed edge toggles the fill."""
    start = np.concatenate(rings)
    end = np.concatenate([np.roll(ring, -1, 0) for ring in rings])
    # The first pixels whose centres, at + ½, reach the bounds of the shape, within the image
    left, top = np.clip(np.ceil(start.min(0) - 0.5), 0, (width, height)).astype(int)
    right, bottom = np.clip(np.ceil(start.max(0) - 0.5), 0, (width, height)).astype(int)
    toggles = np.zeros((bottom - top + 1, right - left), np.uint8)

    # Turn each edge to run from left to right, and find the columns that it crosses
    start, end = np.where(start[:, :1] <= end[:, :1], [start, end], [end, start])
    first, last = (np.clip(np.ceil(p[:, 0] - 0.5), left, right).astype(int) for p in (start, end))
    edge = np.repeat(np.arange(len(start)), last - first)
    nth = np.arange(len(edge)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
    column = first[edge] + nth
    (x, y), (dx, dy) = start[edge].T, (end - start)[edge].T
    row = np.ceil(y + (column + 0.5 - x) * dy / dx - 0.5)
    row = np.clip(row, top, bottom).astype(int)
    flat = (row - top) * toggles.shape[1] + column - left
    np.add.at(toggles.reshape(-1), flat, np.uint8(1))  # wraps at 256, which is even
    np.add.accumulate(toggles, axis=0, out=toggles)
    toggles &= 1
    return toggles[:-1].view(bool), (left, top)
