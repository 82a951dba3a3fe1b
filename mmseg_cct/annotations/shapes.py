"""Labelled shapes on images, which readers return, the rasteriser draws and writers write.

Coordinates are pixels, x to the right and y down, measured from the outer corner of the first
pixel: the pixel in column x and row y covers [x, x + 1) × [y, y + 1), and its centre is at
(x + ½, y + ½). A polygon around a single pixel is a square of side 1.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import cv2
import numpy as np

from mmseg_cct.errors import UserError

Pair = Sequence[float] | np.ndarray  # x and y
Color = tuple[int, int, int]  # RGB in [0, 255]
_FARTHEST = 1e9  # pixels from the image
_CORNERS = 128  # of the polygon that stands for an ellipse


@dataclass(frozen=True, eq=False)
class Shape:
    """A region of an image, either polygons or a mask; or something drawn that is no region."""

    label: str | None  # name of its class; None if its pixels are to be ignored
    # rings (N, 2) of x and y, filled by the even-odd rule, so a hole is a ring too
    polygons: Sequence[np.ndarray] = ()
    mask: np.ndarray | None = None  # (h, w) bool, instead of polygons
    offset: tuple[int, int] = (0, 0)  # column and row of the mask's first pixel
    # shapes with a higher z lie on top, at equal z later ones; None if the format has no order
    z: int | None = None
    is_box: bool = False  # whether it is an upright box, which may only bound other shapes
    is_crowd: bool = False  # COCO's `iscrowd`
    # what it is if it is no region, such as `polyline`; `polygons` are then any points of it
    left_out: str = ''

    def __post_init__(self) -> None:
        # Not `>=`, so that NaN is found, too: NumPy casts both to any integer without a word.
        if not all((np.abs(points) < _FARTHEST).all() for points in self.polygons):
            raise UserError('shape', 'a point far from any image', 'pixels')

    @classmethod
    def of_mask(cls, label: str | None, mask: np.ndarray, **attributes: object) -> 'Shape':
        """Makes a shape of a mask of the whole image, and keeps only the part around its pixels."""
        left, top, width, height = cv2.boundingRect(mask.view(np.uint8))
        # A copy, since a view would keep the whole mask in memory
        part = mask[top : top + height, left : left + width].copy()
        return cls(label, mask=part, offset=(left, top), **attributes)  # type: ignore[arg-type]

    @property
    def extent(self) -> np.ndarray:
        """Its least and greatest x and y, `(2, 2)`."""
        if self.mask is None:
            points = np.concatenate(self.polygons)
            return np.stack([points.min(0), points.max(0)])
        left, top, width, height = cv2.boundingRect(self.mask.view(np.uint8))
        return np.add(self.offset, [[left, top], [left + width, top + height]]).astype(float)


class Note(NamedTuple):
    """What a reader met that is in no mask, and how often."""

    text: str
    number: int


@dataclass(frozen=True, eq=False)
class AnnotatedImage:
    """What somebody drew on an image."""

    name: str  # path of the image as the tool knows it, with `/` and its extension
    size: tuple[int, int] | None  # width and height; None if the format does not say
    # in the order of the file. They are read one by one, once the size is known to be the image's:
    # a small file may hold masks of any size
    parts: Iterable[Shape | Note]
    location: str  # where in the export it is, for messages
    # whether coordinates are shares of the sides of the image as it is shown, times `size`
    is_relative: bool = False
    # whether somebody finished it, as far as the tool says; if not, a lack of shapes means nothing
    is_done: bool = True
    # what the export calls the part that it belongs to, as a path: `Validation`, `val/x.json`
    subset: str = ''


class Annotations(NamedTuple):
    """A whole export of a tool."""

    # colours by name, in the tool's order; a colour is None if the tool gives none
    classes: Mapping[str, Color | None]
    # an error stands in place of an unreadable image: a damaged file does not hide the rest
    images: Iterable[AnnotatedImage | UserError]
    is_undrawn_known: bool = False  # whether each pixel has a class, or an image is an error


def points_of(numbers: Any) -> np.ndarray:
    """Makes points `(N, 2)` of alternating x and y, or of pairs."""
    return np.asarray(numbers, float).reshape(-1, 2)


def region(label: str | None, ring: np.ndarray, **attributes: Any) -> Shape:
    """Makes a shape of a ring, which has an area from three points on."""
    if len(ring) < 3:
        return Shape(label, [ring], left_out='polygon of fewer than three points')
    return Shape(label, [ring], **attributes)


def box(corner: Pair, opposite: Pair, degrees: float = 0, about: Pair | None = None) -> np.ndarray:
    """Makes the ring of a box, turned clockwise about a point, by default its centre."""
    (left, top), (right, bottom) = corner, opposite
    ring = np.array([[left, top], [right, top], [right, bottom], [left, bottom]], float)
    return _turned(ring, ring.mean(0) if about is None else np.asarray(about), degrees)


def ellipse(center: Pair, radii: Pair, degrees: float = 0) -> np.ndarray:
    """Makes the ring of an ellipse, turned clockwise about its centre."""
    angles = np.linspace(0, 2 * math.pi, _CORNERS, endpoint=False)
    ring = np.asarray(center) + np.stack([np.cos(angles), np.sin(angles)], 1) * radii
    return _turned(ring, np.asarray(center), degrees)


def _turned(ring: np.ndarray, center: np.ndarray, degrees: float) -> np.ndarray:
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return (ring - center) @ np.array([[cos, sin], [-sin, cos]]) + center
