"""Draws what somebody drew on an image, and tells what is not in the mask as it was drawn."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mmseg_cct.datasets.files.labels import BACKGROUND, IGNORE_INDEX, is_background
from mmseg_cct.errors import UserError

from .class_table import ClassTable
from .pictures import size_of, turned
from .rasterize import rasterize, scaled
from .shapes import AnnotatedImage, LeftOut, Note, Shape, extent_of

_SLACK = 2.0, 0.05  # pixels and share of the sides by which a box may miss what it bounds
_MOST = 2**31  # pixels of the masks of all shapes of an image, each a byte

Told = defaultdict[str, Counter[str]]  # how often something was met, by image


class Drawer(NamedTuple):
    """How an import draws."""

    table: ClassTable
    rest: str | None  # what pixels that no shape covers become
    resize: bool  # whether to scale annotations of images whose size differs
    fill_boxes: bool  # whether boxes that bound other shapes are regions, too
    draw_crowds: bool  # whether regions with COCO's `iscrowd` are, too
    empty: bool  # whether a finished image without a shape is all background
    told: Told

    @property
    def undrawn(self) -> int:
        """The id of pixels that no shape covers."""
        name = self.table.background if self.rest == BACKGROUND else None
        return self.table.ids[name] if name else IGNORE_INDEX

    def draw(self, annotated: AnnotatedImage, image: Path | bytes) -> np.ndarray | None:
        """Draws the mask of an image (its file, or what that holds) as it is shown.

        Returns class ids `(H, W)` uint8, or None for an image that is unlabelled.

        Raises:
            UserError: If a size or a class does not fit, or no shape lies in the image.
        """
        # The frame of the coordinates: the image as shown, or as stored where EXIF turns it
        stored, orientation = size_of(image)
        shown = stored[::-1] if orientation > 4 else stored
        size, frame, read_as = annotated.size or shown, shown, 'read as shown'
        if size not in (shown, stored) and not self.resize:
            expected = f'{shown[0]}×{shown[1]}, the size of the image, or --resize'
            raise UserError('annotation', f'of {size[0]}×{size[1]} pixels', expected)
        # stored if both are upright, or both lie
        is_stored = (size[0] - size[1]) * (stored[0] - stored[1]) > 0
        if not annotated.is_relative and is_stored and shown != stored:
            frame, read_as = stored, 'read as stored, and turned'

        parts = self._read(annotated, size, frame)
        if not self.fill_boxes:  # in pixels, because boxes may miss what they bound by a few
            bounding = set(map(id, bounding_boxes(parts)))
            parts = [part for part in parts if id(part) not in bounding]
            self._report('boxes that bound shapes, not drawn', annotated, len(bounding))
        shapes = [part for part in parts if isinstance(part, Shape)]
        left_out = [part for part in parts if isinstance(part, LeftOut)]
        fate = 'ignored within its extent' if shapes else 'unlabelled'
        for part in left_out:
            more = '; --boxes fill draws it' if part.is_box and not self.fill_boxes else ''
            self._report(f'{part.kind}, {fate}{more}', annotated)
        if not (shapes or (self.empty and annotated.is_done and not left_out)):
            return None
        if orientation > 1:
            self._report(f'photos turned by EXIF, {read_as}', annotated)

        drawing = rasterize(
            shapes, frame, self._ids(shapes), self.undrawn, [part.extent for part in left_out]
        )
        if shapes and drawing.is_lost.all():
            (left, top), (right, bottom) = _union([shape.extent for shape in shapes])
            found = f'no shape covers a pixel, from {left:g},{top:g} to {right:g},{bottom:g}'
            expected = f'x before y, in pixels of the image of {frame[0]}×{frame[1]}'
            raise UserError('annotation', found, expected)
        lost = int(drawing.is_lost.sum())
        self._report('shapes without a pixel in the image, not drawn', annotated, lost)
        return drawing.mask if frame == shown else turned(drawing.mask, orientation)

    def _read(
        self, annotated: AnnotatedImage, size: tuple[int, int], frame: tuple[int, int]
    ) -> list[Shape | LeftOut]:
        """Reads what is drawn, in pixels of the frame and within the memory of an image."""
        parts: list[Shape | LeftOut] = []
        pixels = crowds = 0
        for part in annotated.parts:
            if isinstance(part, Note):
                self._report(part.what, annotated, part.number)
                continue
            if isinstance(part, LeftOut) and part.is_box and self.fill_boxes:
                part = Shape(part.label, [part.points], z=part.z, is_box=True, group=part.group)
            if isinstance(part, Shape) and part.is_crowd and not self.draw_crowds:
                crowds, part = crowds + 1, replace(part, label=None)
            parts.append(part if size == frame else scaled(part, size, frame))
            mask = getattr(parts[-1], 'mask', None)
            pixels += 0 if mask is None else mask.size
            if pixels > _MOST:
                raise UserError('masks', f'{pixels} pixels and more', f'at most {_MOST} an image')
        self._report('regions with iscrowd, ignored; --crowds draw draws them', annotated, crowds)
        return parts

    def _report(self, what: str, annotated: AnnotatedImage, number: int = 1) -> None:
        if number:
            self.told[what][annotated.name] += number

    def _ids(self, shapes: Sequence[Shape]) -> dict[str, int]:
        ids, background = self.table.ids, self.table.background
        for label in {shape.label for shape in shapes if shape.label is not None} - ids.keys():
            if background is None or not is_background(label):
                raise UserError(f'class {label!r}', '', f'one of {", ".join(ids)}')
            ids[label] = ids[background]
        return ids


def bounding_boxes(parts: Sequence[Shape | LeftOut]) -> list[Shape | LeftOut]:
    """Finds boxes that only bound other shapes, as in files of instances; they are no regions.

    They have the extent of a shape of their label or of their group, in pixels, or lie around what
    has their label in their group.
    """
    of_label: dict[object, list[np.ndarray]] = defaultdict(list)
    of_group: dict[object, list[np.ndarray]] = defaultdict(list)
    for part in parts:
        if isinstance(part, Shape) and not part.is_box and part.has_area:
            of_label[part.label].append(part.extent)
            if part.group is not None:
                of_group[part.group].append(part.extent)
                of_group[part.group, part.label].append(part.extent)
    # by the left side: a box looks at few of many
    same = {label: np.stack(extents) for label, extents in of_label.items()}
    same = {label: extents[extents[:, 0, 0].argsort()] for label, extents in same.items()}
    unions = {group: _union(extents)[None] for group, extents in of_group.items()}

    def bounds(box: Shape | LeftOut) -> bool:
        extent, none = box.extent, np.empty((0, 2, 2))
        slack = np.maximum(_SLACK[0], _SLACK[1] * (extent[1] - extent[0]))
        of_its_label = same.get(box.label, none)
        left = extent[0, 0] + np.array([-1, 1]) * slack[0]
        first, last = of_its_label[:, 0, 0].searchsorted(left)
        near = of_its_label[first : last + 1], unions.get(box.group, none)
        equal = np.concatenate(near) - extent
        within = (unions.get((box.group, box.label), none) - extent) * [[1], [-1]]  # inwards
        is_equal = (np.abs(equal) <= slack).all((1, 2)).any()
        return bool(is_equal or (within >= -slack).all((1, 2)).any())

    return [part for part in parts if part.is_box and bounds(part)]


def _union(extents: Sequence[np.ndarray]) -> np.ndarray:
    return extent_of(np.concatenate(extents))
