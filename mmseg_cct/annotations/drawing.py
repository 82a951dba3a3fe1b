"""Draws what somebody drew on an image into a mask of class ids.

A pixel belongs to a polygon if its centre lies inside. `cv2.fillPoly` would also fill each pixel
that the outline touches, so that regions side by side would overlap and holes shrink.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from PIL import Image, ImageOps

from mmseg_cct.datasets.files.images import ORIENTATION
from mmseg_cct.datasets.files.labels import BACKGROUND, IGNORE_INDEX, is_background
from mmseg_cct.errors import UserError

from .class_table import ClassTable
from .pictures import size_of
from .shapes import AnnotatedImage, Note, Shape


class Drawer(NamedTuple):
    """How an import draws."""

    table: ClassTable
    undrawn: str | None  # what pixels that no shape covers become
    boxes: str | None  # `fill`, `ignore` or undecided, as for `import_masks`
    draw_crowds: bool  # whether regions with COCO's `iscrowd` are regions
    empty: bool  # whether a finished image without a shape is all background

    def draw(
        self, annotated: AnnotatedImage, image: Path | bytes, notes: Counter[str]
    ) -> np.ndarray | None:
        """Draws the mask of an image (its file, or what that holds) as it is shown.

        Returns class ids `(H, W)` uint8, or None for an image that is unlabelled. `notes` counts
        what is not in the mask as it was drawn.

        Raises:
            UserError: If a size or a class does not fit, or no shape lies in the image.
        """
        # Some tools draw on the image as it is stored, others as EXIF turns it: the size tells.
        stored, orientation = size_of(image)
        shown = stored[::-1] if orientation > 4 else stored
        size = annotated.size or shown
        if size not in (shown, stored):
            expected = f'{shown[0]}×{shown[1]}, the size of the image'
            raise UserError('annotation', f'of {size[0]}×{size[1]} pixels', expected)
        if annotated.is_relative and size != shown:
            raise UserError('a photo turned by EXIF needs the JSON of Label Studio, not its COCO')

        parts = self._read(annotated, notes)
        shapes = [part for part in parts if not part.left_out]
        left_out = [part for part in parts if part.left_out]
        # In an image with masks, the background would be wrong where something lies.
        treatment = 'ignored within its extent' if shapes else 'unlabelled'
        for part in left_out:
            hint = '; --boxes fill draws it' if part.is_box else ''
            notes[f'{part.left_out}, {treatment}{hint}'] += 1
        if not (shapes or (self.empty and annotated.is_done and not left_out)):
            return None
        if orientation > 1:
            read_as = 'read as shown' if size == shown else 'read as stored, and turned'
            notes[f'photos turned by EXIF, {read_as}'] += 1

        ids, undrawn_id = self._ids(shapes)
        extents = [part.extent for part in left_out]
        mask, is_lost = rasterize(shapes, size, ids, undrawn_id, extents)
        if shapes and is_lost.all():
            raise UserError('annotation', 'no shape lies in the image', 'x before y, in pixels')
        notes['shapes without a pixel in the image, not drawn'] += int(is_lost.sum())
        if size == shown:
            return mask
        turned = Image.fromarray(mask)
        turned.getexif()[ORIENTATION] = orientation
        return np.asarray(ImageOps.exif_transpose(turned))

    def _ids(self, shapes: list[Shape]) -> tuple[dict[str, int], int]:
        """Returns the ids of the shapes' classes, and that of what no shape covers."""
        ids = self.table.ids
        background = next(filter(is_background, ids), None)
        for label in {shape.label for shape in shapes if shape.label is not None} - ids.keys():
            # Another word for it than that of an earlier import
            if background is None or not is_background(label):
                raise UserError(f'class {label!r}', '', f'one of {", ".join(ids)}')
            ids[label] = ids[background]
        if background is None or self.undrawn != BACKGROUND:
            return ids, IGNORE_INDEX
        return ids, ids[background]

    def _read(self, annotated: AnnotatedImage, notes: Counter[str]) -> list[Shape]:
        """Reads what is drawn, and decides on boxes and crowds."""
        parts, renamed = list[Shape](), self.table.renamed
        for part in annotated.parts:
            if isinstance(part, Note):
                notes[part.text] += part.number
                continue
            if part.label is not None and part.label in renamed:
                part = replace(part, label=renamed[part.label])
            if part.is_box and self.boxes:
                part = replace(part, left_out='box' if self.boxes == 'ignore' else '')
            elif part.is_crowd and not self.draw_crowds:
                notes['regions with iscrowd, ignored; --crowds draw draws them'] += 1
                part = replace(part, label=None)
            parts.append(part)
        if self.boxes is None:
            # Files of instances have a box around each region; it must not become one itself.
            drawn = [part for part in parts if part.label and not part.left_out]
            both = {s.label for s in drawn if s.is_box} & {s.label for s in drawn if not s.is_box}
            if both:
                raise UserError(
                    f'class {sorted(map(str, both))[0]} has boxes and other shapes: pass --boxes '
                    'fill if its boxes are regions, --boxes ignore if they bound the other shapes'
                )
        return parts


def rasterize(
    shapes: Sequence[Shape],
    size: tuple[int, int],
    ids: Mapping[str, int],
    undrawn_id: int,
    unknown: Iterable[np.ndarray] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """Draws shapes on an image of `size` (width, height).

    Returns the mask, ids `(H, W)` uint8, and whether a shape has no pixel in the image, `(N,)`.

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
    return mask, is_lost


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
