"""Draws what somebody drew on an image, and tells what is not in the mask as it was drawn."""

from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageOps

from mmseg_cct.datasets.files.images import ORIENTATION
from mmseg_cct.datasets.files.labels import BACKGROUND, IGNORE_INDEX, is_background
from mmseg_cct.errors import UserError

from .class_table import ClassTable
from .pictures import size_of
from .rasterize import rasterize
from .shapes import AnnotatedImage, Note, Shape

_MOST = 2**31  # pixels of the masks of all shapes of an image, each a byte

ImageNotes = defaultdict[str, Counter[str]]  # how often something was met, by image


class Drawer(NamedTuple):
    """How an import draws."""

    table: ClassTable
    undrawn: str | None  # what pixels that no shape covers become
    boxes: str | None  # `fill`, `ignore` or undecided, as for `import_masks`
    draw_crowds: bool  # whether regions with COCO's `iscrowd` are regions
    empty: bool  # whether a finished image without a shape is all background
    notes: ImageNotes

    def draw(self, annotated: AnnotatedImage, image: Path | bytes) -> np.ndarray | None:
        """Draws the mask of an image (its file, or what that holds) as it is shown.

        Returns class ids `(H, W)` uint8, or None for an image that is unlabelled.

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

        parts = self._read(annotated)
        shapes = [part for part in parts if not part.left_out]
        left_out = [part for part in parts if part.left_out]
        # In an image with masks, the background would be wrong where something lies.
        treatment = 'ignored within its extent' if shapes else 'unlabelled'
        for part in left_out:
            hint = '; --boxes fill draws it' if part.is_box else ''
            self._note(f'{part.left_out}, {treatment}{hint}', annotated)
        if not (shapes or (self.empty and annotated.is_done and not left_out)):
            return None
        if orientation > 1:
            read_as = 'read as shown' if size == shown else 'read as stored, and turned'
            self._note(f'photos turned by EXIF, {read_as}', annotated)

        ids, undrawn_id = self._ids(shapes)
        drawing = rasterize(shapes, size, ids, undrawn_id, [part.extent for part in left_out])
        if shapes and drawing.is_lost.all():
            extents = np.concatenate([shape.extent for shape in shapes])
            (left, top), (right, bottom) = extents.min(0), extents.max(0)
            problem = f'no shape covers a pixel, from {left:g},{top:g} to {right:g},{bottom:g}'
            raise UserError('annotation', problem, f'x before y, within {size[0]}×{size[1]}')
        num_lost = int(drawing.is_lost.sum())
        self._note('shapes without a pixel in the image, not drawn', annotated, num_lost)
        if size == shown:
            return drawing.mask
        turned = Image.fromarray(drawing.mask)
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

    def _read(self, annotated: AnnotatedImage) -> list[Shape]:
        """Reads what is drawn, within the memory of an image, and decides on boxes and crowds."""
        parts, renamed = list[Shape](), self.table.renamed
        num_pixels = num_crowds = 0
        for part in annotated.parts:
            if isinstance(part, Note):
                self._note(part.text, annotated, part.number)
                continue
            if part.label is not None and part.label in renamed:
                part = replace(part, label=renamed[part.label])
            if part.is_box and self.boxes:
                part = replace(part, left_out='box' if self.boxes == 'ignore' else '')
            elif part.is_crowd and not self.draw_crowds:
                num_crowds, part = num_crowds + 1, replace(part, label=None)
            parts.append(part)
            num_pixels += 0 if part.mask is None else part.mask.size
            if num_pixels > _MOST:
                raise UserError('masks', f'{num_pixels} pixels', f'at most {_MOST} an image')
        text = 'regions with iscrowd, ignored; --crowds draw draws them'
        self._note(text, annotated, num_crowds)
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

    def _note(self, text: str, annotated: AnnotatedImage, number: int = 1) -> None:
        if number:
            self.notes[text][annotated.name] += number
