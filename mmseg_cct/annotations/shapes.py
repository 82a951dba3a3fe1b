"""Labelled shapes on images, which readers return, the rasteriser draws and writers write.

Coordinates are pixels, x to the right and y down, measured from the outer corner of the first
pixel: the pixel in column x and row y covers [x, x + 1) × [y, y + 1), and its centre is at
(x + ½, y + ½). A polygon around a single pixel is a square of side 1.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import cv2
import numpy as np

from mmseg_cct.errors import Problem, UserError

Colour = tuple[int, int, int]  # RGB in [0, 255]
# Nobody draws more by hand; a file that has more is damaged, perhaps on purpose.
MAX_POINTS = 200_000
MAX_PIXELS = 2**28
_FARTHEST = 1e9  # pixels from the image


@dataclass(frozen=True, eq=False)
class Shape:
    """A region of an image: either polygons or a mask."""

    label: str | None  # name of its class; None if its pixels are to be ignored
    # rings (N, 2) of x and y, filled by the even-odd rule, so a hole is a ring too
    polygons: Sequence[np.ndarray] = ()
    mask: np.ndarray | None = None  # (h, w) bool, instead of polygons
    offset: tuple[int, int] = (0, 0)  # column and row of the mask's first pixel
    # shapes with a higher z lie on top, at equal z later ones; None if the format has no order
    z: int | None = None
    is_box: bool = False  # whether it is an upright box, which may only bound other shapes
    group: object = None  # what shapes of one object have in common, if the tool groups them

    def __post_init__(self) -> None:
        for ring in self.polygons:
            if ring.ndim != 2 or ring.shape[1:] != (2,) or len(ring) < 3:
                raise UserError(
                    'polygon', f'shape {ring.shape}', 'three points or more, of x and y'
                )
            if len(ring) > MAX_POINTS:
                raise UserError('polygon', f'{len(ring)} points', f'at most {MAX_POINTS}')
            if not (np.abs(ring) < _FARTHEST).all():  # also where a point is NaN
                found = f'a point at {ring[~(np.abs(ring) < _FARTHEST)][0]}'
                raise UserError('polygon', found, 'pixels')
        if self.mask is not None and self.mask.ndim != 2:
            raise UserError('mask', f'shape {self.mask.shape}', 'height and width')
        if (self.mask is None) == (not self.polygons):
            raise UserError('shape', 'not one of the two', 'polygons, or a mask')

    @property
    def has_area(self) -> bool:
        """Whether it is more than a mask without a pixel."""
        return self.mask is None or bool(self.mask.any())

    @property
    def extent(self) -> np.ndarray:
        """Its least and greatest x and y, `(2, 2)`."""
        if self.mask is None:
            points = np.concatenate(self.polygons)
            return np.stack([points.min(0), points.max(0)])
        left, top, width, height = cv2.boundingRect(self.mask.view(np.uint8))
        return np.add(self.offset, [[left, top], [left + width, top + height]]).astype(float)


@dataclass(frozen=True, eq=False)
class LeftOut:
    """An annotation that is no region, or too damaged to be one; much is as for a `Shape`."""

    kind: str  # such as `polyline`
    # least and greatest x and y of its points, (2, 2); None if it lies nowhere
    extent: np.ndarray | None = None
    label: str | None = None
    group: object = None
    fault: str = ''  # what is wrong with it, if it is damaged
    z: int | None = None

    def filled(self) -> 'Shape | LeftOut':
        """Makes a region of a box; all else stays as it is."""
        if self.kind != 'box' or self.extent is None or self.fault:
            return self
        (left, top), (right, bottom) = self.extent
        ring = np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
        return Shape(self.label, [ring], z=self.z, is_box=True, group=self.group)


@dataclass(frozen=True, eq=False)
class AnnotatedImage:
    """What somebody drew on an image."""

    name: str  # path of the image as the tool knows it, with `/` and its extension
    size: tuple[int, int] | None  # width and height; None if the format does not say
    # in the order of the file; none for an image that nobody has labelled
    parts: Sequence[Shape | LeftOut]
    data: bytes | None = None  # the image file itself, if the format holds it
    # whether coordinates are shares of the sides of the image as it is shown: in [0, 1], or of
    # `size` if there is one
    is_relative: bool = False
    # whether somebody finished it, as far as the tool says; if not, a lack of shapes means nothing
    is_done: bool = True
    # numbers of pixels that were read with a doubt, by what they are and become
    notes: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for side in self.size or ():
            if not isinstance(side, (int, float)) or not 0 < side < _FARTHEST or side % 1:
                found = '×'.join(map(str, self.size or ()))
                raise UserError('size', found, 'width and height in pixels')

    @property
    def shapes(self) -> list[Shape]:
        """Its regions."""
        return [part for part in self.parts if isinstance(part, Shape)]

    @property
    def left_out(self) -> list[LeftOut]:
        """Its annotations that are no regions."""
        return [part for part in self.parts if isinstance(part, LeftOut)]

    def with_filled_boxes(self) -> 'AnnotatedImage':
        """Makes regions of boxes that come without one, as in COCO."""
        filled = [part.filled() if isinstance(part, LeftOut) else part for part in self.parts]
        return replace(self, parts=filled)


@dataclass(frozen=True, eq=False)
class Annotations:
    """A whole export of a tool."""

    # colours by name, in the tool's order; a colour is None if the tool gives none
    classes: Mapping[str, Colour | None]
    # a problem stands in place of an unreadable image: a damaged file does not hide the rest
    images: Iterable[AnnotatedImage | Problem | UserError]

    def renamed(self, names: Mapping[str, str | None]) -> 'Annotations':
        """Renames classes, several to the same name if wanted; None ignores their regions."""
        if not names:
            return self
        classes: dict[str, Colour | None] = {}
        for name, colour in self.classes.items():
            new = names.get(name, name)
            if new is not None:
                classes.setdefault(new, colour)
        return Annotations(classes, (_renamed(image, names) for image in self.images))


def _renamed(
    image: AnnotatedImage | Problem | UserError, names: Mapping[str, str | None]
) -> AnnotatedImage | Problem | UserError:
    if not isinstance(image, AnnotatedImage):
        return image
    parts = [
        part if part.label is None else replace(part, label=names.get(part.label, part.label))
        for part in image.parts
    ]
    return replace(image, parts=parts)
