"""Draws what somebody drew on an image, and tells what is not in the mask as it was drawn."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mmseg_cct.datasets.files.labels import BACKGROUND, IGNORE_INDEX, is_background
from mmseg_cct.errors import UserError
from mmseg_cct.utils.templates import markdown_table

from .class_table import ClassTable
from .pictures import size_of, turned
from .rasterize import Drawing, rasterize, scaled
from .shapes import AnnotatedImage, LeftOut, Shape

IGNORED = f'ignored ({IGNORE_INDEX})'
_NAMED = 3  # images by name
_FAR = 2.0  # sides of the image; shares beyond are pixels
_SLACK = 2.0, 0.05  # pixels and share of the sides by which a box may miss what it bounds


@dataclass
class _Row:
    numbers: Counter[str] = field(default_factory=Counter)  # by image
    out_of: int = 0
    fault: str = ''


class Consequences:
    """Counts what was drawn but is not in the masks as it was drawn, by its kind and its fate."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], _Row] = {}

    def add(
        self, what: str, becomes: str, image: str, number: int = 1, out_of: int = 0, fault: str = ''
    ) -> None:
        """Counts a number of one kind on an image; `out_of` is the whole that it is a share of."""
        if number:
            row = self._rows.setdefault((what, becomes), _Row(fault=fault))
            row.numbers[image] += number
            row.out_of += out_of

    def __getitem__(self, what: str) -> int:
        """The number of one kind, whatever became of it."""
        return sum(row.numbers.total() for kind, row in self._rows.items() if kind[0] == what)

    def describe(self) -> str:
        """Describes all kinds as a table; empty if there is nothing to tell."""
        rows = []
        for (what, becomes), row in self._rows.items():
            names, number = list(row.numbers), row.numbers.total()
            share = f' ({number / row.out_of:.1%})' if row.out_of else ''
            more = ', ...' if len(names) > _NAMED else ''
            fault = f' ({row.fault})' if row.fault else ''
            images = f'{len(names)}: {", ".join(names[:_NAMED])}{more}{fault}'
            rows.append([what, f'{number}{share}', images, becomes])
        header = ['not as drawn', 'number', 'images', 'becomes']
        return markdown_table(header, rows, 'lrll') if rows else ''


class Drawer(NamedTuple):
    """How an import draws."""

    table: ClassTable
    rest: str | None  # what pixels that no shape covers become
    resize: bool  # whether to scale annotations of images whose size differs
    fill_boxes: bool  # whether boxes that bound other shapes are regions, too
    told: Consequences

    @property
    def undrawn(self) -> int:
        """The id of pixels that no shape covers."""
        name = self.table.background if self.rest == BACKGROUND else None
        return self.table.ids[name] if name else IGNORE_INDEX

    def draw(self, annotated: AnnotatedImage, image: Path | bytes) -> np.ndarray:
        """Draws the mask of an image (its file, or what that holds) as it is shown.

        Returns class ids `(H, W)` uint8.

        Raises:
            UserError: If a size or a class does not fit, or no shape lies in the image.
        """
        # The frame of the coordinates: the image as shown, or as stored where EXIF turns it
        ids = self._ids(annotated.shapes)
        stored, orientation = size_of(image)
        shown = stored[::-1] if orientation > 4 else stored
        size, parts, read_as = annotated.size, list(annotated.parts), 'read as shown'
        if size not in (None, shown, stored) and not self.resize:
            expected = f'{shown[0]}×{shown[1]}, the size of the image, or --resize'
            raise UserError('annotation', f'of {size[0]}×{size[1]} pixels', expected)
        _require_unit(annotated)
        frame = shown
        # stored if both are upright, or both lie
        is_stored = size and (size[0] - size[1]) * (stored[0] - stored[1]) > 0
        if not annotated.is_relative and is_stored and shown != stored:
            frame, read_as = stored, 'read as stored, and turned'
        if annotated.is_relative or size not in (None, frame):
            parts = [scaled(part, size, frame) for part in parts]
        if orientation > 1:
            self.told.add('photos turned by EXIF', read_as, annotated.name)

        # What is a region: in pixels, because boxes may miss what they bound by a few
        if not self.fill_boxes:
            bounding = bounding_boxes(parts)
            parts = [part for part in parts if part not in bounding]
            fate = 'no region; --boxes fill draws them'
            self.told.add('boxes that bound shapes', fate, annotated.name, len(bounding))
        shapes = [part for part in parts if isinstance(part, Shape)]
        left_out = [part for part in parts if isinstance(part, LeftOut)]

        # What became of it
        extents = [part.extent for part in left_out if part.extent is not None]
        drawing = rasterize(shapes, frame, ids, self.undrawn, extents)
        _require_inside(shapes, drawing, frame)
        self.tell(annotated, left_out)
        self._tell_drawn(annotated.name, shapes, drawing)
        return drawing.mask if frame == shown else turned(drawing.mask, orientation)

    def tell(self, annotated: AnnotatedImage, left_out: Sequence[LeftOut]) -> None:
        """Tells what is no region, and what the reader noted."""
        for part in left_out:
            fate = f'{IGNORED} within its extent' if annotated.shapes else 'no mask: unlabelled'
            fate = 'nothing' if part.extent is None else fate
            if part.kind == 'box' and not part.fault and not self.fill_boxes:
                fate += '; --boxes fill draws it'
            what = f'damaged {part.kind}' if part.fault else part.kind
            self.told.add(what, fate, annotated.name, fault=part.fault)
        pixels = sum(shape.mask.size for shape in annotated.shapes[:1] if shape.mask is not None)
        for (what, fate), number in annotated.notes.items():
            self.told.add(what, fate, annotated.name, number, pixels)

    def _tell_drawn(self, name: str, shapes: Sequence[Shape], drawing: Drawing) -> None:
        size = drawing.mask.shape[::-1]
        ignored = sum(shape.label is None for shape in shapes)
        self.told.add('regions marked as ignored', IGNORED, name, ignored)
        extents = np.array([shape.extent for shape in shapes]).reshape(-1, 2, 2)
        inside = np.ptp(extents.clip(0, size), axis=1).prod(1)
        is_cut = ~drawing.is_lost & (2 * inside < np.ptp(extents, axis=1).prod(1))
        for what, fate, number in (
            ('shapes without a pixel in the image', 'nothing', drawing.is_lost.sum()),
            ('shapes of which half lies outside', 'cut: x and y swapped?', is_cut.sum()),
            ('shapes under others of another class', 'nothing', drawing.is_hidden.sum()),
            ('overlaps in a format without order', 'the smaller', drawing.is_contested.sum()),
        ):
            self.told.add(what, fate, name, int(number))

    def _ids(self, shapes: Sequence[Shape]) -> dict[str, int]:
        ids, background = self.table.ids, self.table.background
        for label in {shape.label for shape in shapes if shape.label is not None} - ids.keys():
            if background is None or not is_background(label):
                raise UserError(f'class {label!r}', '', f'one of {", ".join(ids)}')
            ids[label] = ids[background]
        return ids


def _require_unit(annotated: AnnotatedImage) -> None:
    """Raises an error if pixels look like shares of the sides, or shares like pixels."""
    if not all(shape.polygons for shape in annotated.shapes):
        return
    rings = [ring for shape in annotated.shapes for ring in shape.polygons]
    points = np.concatenate([*rings, [[0, 0]]])
    are_shares = annotated.is_relative and annotated.size is None
    found = f'shapes up to {points.max():g}'
    if are_shares and points.max() > _FAR:
        raise UserError('annotation', f'{found}, like pixels', 'shares of the sides, from 0 to 1')
    if rings and not are_shares and points.min() >= 0 and points.max() <= 1:
        raise UserError('annotation', f'{found}, like shares of the sides', 'pixels')


def _require_inside(shapes: Sequence[Shape], drawing: Drawing, size: tuple[int, int]) -> None:
    """Raises an error that guesses the cause if no shape has a pixel in the image."""
    if not (shapes and drawing.is_lost.all()):
        return
    swapped = [shape.extent[:, ::-1] for shape in shapes]
    is_swapped = any((extent[0] < size).all() and (extent[1] > 0).all() for extent in swapped)
    (left, top), (right, bottom) = union([shape.extent for shape in shapes])
    found = (
        f'no shape covers a pixel: they lie from {left:g},{top:g} to {right:g},{bottom:g}, the '
        f'image has {size[0]}×{size[1]} pixels'
    )
    expected = 'x before y: are they swapped?' if is_swapped else 'pixels of this image'
    raise UserError('annotation', found, expected)


def bounding_boxes(parts: Sequence[Shape | LeftOut]) -> list[Shape | LeftOut]:
    """Finds boxes that only bound other shapes, as in files of instances; they are no regions.

    They have the extent of a shape of their label or group, in pixels, or are around their group's.
    """
    members: dict[tuple[object, object], list[np.ndarray]] = defaultdict(list)
    for index, shape in enumerate(parts):
        if isinstance(shape, Shape) and not shape.is_box and shape.has_area:
            keys = [(shape.label, index), (shape.label, shape.group), (None, shape.group)]
            for key in keys[: 1 if shape.group is None else 3]:
                members[key].append(shape.extent)
    bounded = {key: union(extents) for key, extents in members.items()}
    boxes = [
        each for each in parts if (each.is_box if isinstance(each, Shape) else each.kind == 'box')
    ]
    return [box for box in boxes if any(_bounds(box, *each) for each in bounded.items())]


def _bounds(box: Shape | LeftOut, of: tuple[object, object], extent: np.ndarray) -> bool:
    label, group = of
    is_of_group = box.group is not None and group == box.group
    if box.extent is None or not (label == box.label or is_of_group):
        return False
    slack = np.maximum(_SLACK[0], _SLACK[1] * (box.extent[1] - box.extent[0]))
    beyond = (extent - box.extent) * [[1], [-1]]  # inwards at all sides
    is_equal, is_within = (np.abs(beyond) <= slack).all(), (beyond >= -slack).all()
    return bool(is_equal or (is_within and is_of_group and label == box.label))


def union(extents: Sequence[np.ndarray]) -> np.ndarray:
    """Unites extents `(2, 2)`."""
    corners = np.stack(extents)
    return np.stack([corners[:, 0].min(0), corners[:, 1].max(0)])
