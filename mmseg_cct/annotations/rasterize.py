"""Draws shapes as a mask of class ids.

A pixel belongs to a polygon if its centre lies inside. `cv2.fillPoly` would also fill each pixel
that the outline touches, so that regions side by side would overlap and holes shrink.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import cv2
import numpy as np

from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.errors import UserError

from .shapes import MAX_PIXELS, LeftOut, Shape

_CROSSINGS = 2**22  # of columns by an outline, at most; real ones have thousands


class Drawing(NamedTuple):
    """A mask, ids `(H, W)` uint8, and what became of each shape `(N,)`."""

    mask: np.ndarray
    is_lost: np.ndarray  # it has no pixel in the image
    is_hidden: np.ndarray  # others cover all of it, at least in part by another class
    is_contested: np.ndarray  # it covers another class, though the format has no order


def rasterize(
    shapes: Sequence[Shape],
    size: tuple[int, int],
    ids: Mapping[str, int],
    rest: int,
    unknown: Iterable[np.ndarray] = (),
) -> Drawing:
    """Draws shapes on an image of `size` (width, height).

    Shapes with a higher z cover the others, at equal z later ones, and without an order small ones
    cover large ones. `rest` is the id where there is no shape; it is ignored in the extents of what
    is `unknown` and of shapes without a pixel.
    """
    # Shapes are drawn from below; each takes pixels from those that it covers
    owner = np.zeros(size[::-1], np.int32)  # 0, or the number of a shape from 1
    labels = [IGNORE_INDEX if shape.label is None else ids[shape.label] for shape in shapes]
    table = np.array([rest, *labels], np.uint8)
    inside, seen = np.zeros((2, len(table)), np.int64)
    is_contested = np.zeros(len(table), bool)

    def height(number: int) -> tuple[float, float]:
        z = shapes[number - 1].z
        return (0, -_area(shapes[number - 1])) if z is None else (z, 0)

    for number in sorted(range(1, len(table)), key=height):
        region, (left, top) = draw(shapes[number - 1], size)
        part = owner[top : top + region.shape[0], left : left + region.shape[1]]
        covered = np.bincount(part[region], minlength=len(table))
        if shapes[number - 1].z is None:
            is_contested[number] = covered[1:][table[1:] != table[number]].any()
        part[region] = number
        seen -= covered
        inside[number] = seen[number] = covered.sum()
    mask = table[owner]

    # What became of each: a shape under others of its own class is in the mask all the same
    is_lost = np.array([not n and shape.has_area for n, shape in zip(inside[1:], shapes)], bool)
    is_hidden = (inside[1:] > 0) & (seen[1:] == 0)
    for index in np.flatnonzero(is_hidden).tolist():
        region, (left, top) = draw(shapes[index], size)
        part = mask[top : top + region.shape[0], left : left + region.shape[1]]
        is_hidden[index] = (part[region] != table[index + 1]).any()

    # An object is where something was left out, so that is no background
    for extent in (*unknown, *(shapes[index].extent for index in np.flatnonzero(is_lost).tolist())):
        first = np.floor(extent[0])
        ends = np.maximum(np.ceil(extent[1]), first + 1)  # a point is a pixel
        (left, top), (right, bottom) = np.clip([first, ends], 0, size).astype(int)
        part = mask[top:bottom, left:right]
        part[owner[top:bottom, left:right] == 0] = IGNORE_INDEX
    return Drawing(mask, is_lost, is_hidden, is_contested[1:])


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


def scaled(
    shape: Shape | LeftOut, size: tuple[int, int] | None, new: tuple[int, int]
) -> Shape | LeftOut:
    """Scales a shape from one image size to another, or from [0, 1] if there is no first size."""
    factors = np.divide(new, size or (1, 1))
    if isinstance(shape, LeftOut):
        return shape if shape.extent is None else replace(shape, extent=shape.extent * factors)
    if shape.mask is None:
        return replace(shape, polygons=[ring * factors for ring in shape.polygons])
    if size is None or size[0] * size[1] > MAX_PIXELS:
        raise UserError('size of a mask', f'{size}', f'at most {MAX_PIXELS} pixels')
    whole = draw_whole(shape, size).view(np.uint8)
    resized = cv2.resize(whole, new, interpolation=cv2.INTER_NEAREST_EXACT)
    return replace(shape, mask=resized.astype(bool), offset=(0, 0))


def _area(shape: Shape) -> float:
    if shape.mask is not None:
        return float(np.count_nonzero(shape.mask))
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
    first, last = (
        np.clip(np.ceil(x - 0.5), left, right).astype(int) for x in (start[:, 0], end[:, 0])
    )
    if (total := (last - first).sum()) > _CROSSINGS:
        found = f'an outline that crosses {total} columns of pixels'
        raise UserError('polygon', found, f'at most {_CROSSINGS}')
    edge = np.repeat(np.arange(len(start)), last - first)
    nth = np.arange(total) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
    column = first[edge] + nth
    (x, y), (dx, dy) = start[edge].T, (end - start)[edge].T
    row = np.ceil(y + (column + 0.5 - x) * dy / dx - 0.5)
    row = np.clip(row, top, bottom).astype(int)
    flat = (row - top) * toggles.shape[1] + column - left
    np.add.at(toggles.reshape(-1), flat, np.uint8(1))  # wraps at 256, which is even
    np.add.accumulate(toggles, axis=0, out=toggles)
    toggles &= 1
    return toggles[:-1].view(bool), (left, top)
