"""Outlines the regions of a mask of class ids as shapes that an annotation tool can edit.

Outlines run along the edges between pixels, so without simplification they reproduce the mask. Each
is simplified by itself: neighbours may overlap or leave a gap, narrower than the tolerance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
from scipy.ndimage import distance_transform_edt

from .shapes import Shape

# An outline moves by at most this share of its region's area per length, so that small and thin
# regions keep their shape: at one pixel of tolerance, CamVid's masks keep an IoU of 0.996.
_RELATIVE_TOLERANCE = 0.1
# Pixels that an outline may move without changing a mask: the centre of a pixel lies 0.35 from the
# line between the middles of two of its edges.
_FREE = 0.3


class TracedImage(NamedTuple):
    """An image with the outlines of its mask."""

    name: str  # path relative to the folder of the images, with `/` and its extension
    size: tuple[int, int]  # width and height
    shapes: list[Shape]  # what `trace_shapes` makes of its mask


@dataclass(frozen=True, eq=False)
class _Region:
    class_id: int
    # its outline, then those of its holes, (N, 2), with each pixel corner on the way
    rings: list[np.ndarray]
    filled: np.ndarray  # (h, w) bool, its pixels and those of its holes
    offset: tuple[int, int]  # column and row of the first pixel of `filled`

    def within(self, image: np.ndarray) -> np.ndarray:
        """Returns the part of an image that `filled` covers, as a view."""
        (column, row), (height, width) = self.offset, self.filled.shape
        return image[row : row + height, column : column + width]


def trace_shapes(
    labels: np.ndarray,
    names: Sequence[str],
    *,
    tolerance: float = 1.0,
    min_area: int = 0,
    undrawn: int | None = None,
    stacked: bool = True,
) -> list[Shape]:
    """Outlines the connected regions of a mask `(H, W)` uint8, larger ones first.

    Outlines move by up to `tolerance` pixels, less for small and thin regions. Regions of fewer
    pixels than `min_area` become part of their surroundings. The class `undrawn` and ids without
    a name are not drawn.

    Few tools draw polygons with holes. With `stacked`, a region is drawn whole if smaller ones on
    top fill its holes. Other regions with holes become masks.
    """
    # The regions, larger ones first: those inside others come later
    labels = _without_specks(labels, min_area)
    drawn = [index for index in np.unique(labels) if index < len(names) and index != undrawn]
    regions = [region for index in drawn for region in _regions(labels, index)]
    regions.sort(key=lambda region: int(region.filled.sum()), reverse=True)
    owner = np.full(labels.shape, -1, np.int32)
    for index, region in enumerate(regions):
        pixels = region.filled & (region.within(labels) == region.class_id)
        region.within(owner)[pixels] = index  # regions inside it come later

    # Their outlines; what covers the holes of a region goes one layer up
    areas = np.bincount(owner[owner >= 0], minlength=len(regions))
    layers = np.zeros(labels.shape, np.int32)
    shapes = []
    for index, region in enumerate(regions):
        name, rings = names[region.class_id], region.rings
        z = int(region.within(layers)[region.filled].max())
        if stacked and len(rings) > 1 and region.within(owner)[region.filled].min() >= index:
            rings = rings[:1]
            region.within(layers)[region.filled] = z + 1
        if len(rings) > 1:
            mask = region.within(owner) == index
            shapes.append(Shape(name, mask=mask, offset=region.offset, z=z))
        else:
            length = sum(map(len, region.rings))
            limit = max(_FREE, _RELATIVE_TOLERANCE * areas[index] / length)
            shapes.append(Shape(name, [_simplified(rings[0], min(tolerance, limit))], z=z))
    return shapes


def _without_specks(labels: np.ndarray, min_area: int) -> np.ndarray:
    """Gives regions of fewer pixels than `min_area` the class of the nearest larger region."""
    specks = np.zeros(labels.shape, bool)
    for index in np.unique(labels) if min_area > 1 else ():
        _, parts, stats, _ = cv2.connectedComponentsWithStats((labels == index).astype(np.uint8))
        small = stats[:, cv2.CC_STAT_AREA] < min_area
        small[0] = False  # the other classes
        specks |= small[parts]
    if not specks.any() or specks.all():
        return labels
    rows, columns = distance_transform_edt(specks, return_distances=False, return_indices=True)
    return labels[rows, columns]


def _regions(labels: np.ndarray, class_id: int) -> Iterator[_Region]:
    # In a picture of twice the size, the corners of a pixel are points of its outline.
    doubled = (labels == class_id).astype(np.uint8).repeat(2, 0).repeat(2, 1)
    # Two levels: outlines, and the holes of each
    contours, tree = cv2.findContours(doubled, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    for contour, (_, _, hole, parent) in zip(contours, tree[0]):
        if parent >= 0:
            continue
        outlines = [contour]
        while hole >= 0:
            outlines.append(contours[hole])
            hole = tree[0][hole][0]
        corners = [(outline[:, 0] + 1) // 2 for outline in outlines]
        # OpenCV visits each corner once or twice
        rings = [c[(c != np.roll(c, 1, axis=0)).any(axis=1)] for c in corners]
        border = contour // 2
        column, row, width, height = cv2.boundingRect(border)
        filled = np.zeros((height, width), np.uint8)
        cv2.drawContours(filled, [border - (column, row)], 0, 1, cv2.FILLED)
        yield _Region(int(class_id), rings, filled.astype(bool), (column, row))


def _simplified(ring: np.ndarray, tolerance: float) -> np.ndarray:
    points = ring
    if tolerance > 0:  # the middles of edges make slanting lines in place of stairs
        points = (ring + np.roll(ring, -1, axis=0)) / 2
    simple = cv2.approxPolyDP(points.astype(np.float32)[:, None], tolerance, True)[:, 0]
    # A thin ring would become a line
    return simple if len(simple) > 2 else ring
