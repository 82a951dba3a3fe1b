"""Outlines the regions of a mask of class ids as shapes that an annotation tool can edit.

Outlines run along the edges between pixels, so without simplification they reproduce the mask. Any
part of an outline that two regions share is simplified once for both, so they neither overlap nor
leave gaps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import cv2
import numpy as np
from scipy.ndimage import distance_transform_edt

from .shapes import Shape

# An outline moves by at most this share of its region's area per length, so that small and thin
# regions keep their shape: at one pixel of tolerance, CamVid's masks keep an IoU of 0.998.
_RELATIVE_TOLERANCE = 0.1
_OUTSIDE = -2  # -1 is what is not drawn
_FREE = 0.3  # pixels that an outline may move without changing a mask


class TracedImage(NamedTuple):
    """An image with the outlines of its mask."""

    name: str  # path relative to the folder of the images, with `/` and its extension
    size: tuple[int, int]  # width and height
    shapes: list[Shape]  # what `trace_shapes` makes of its mask


@dataclass(frozen=True, eq=False)
class _Region:
    """A connected region."""

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
    rest: int | None = None,
    stacked: bool = True,
) -> list[Shape]:
    """Outlines the connected regions of a mask `(H, W)` uint8, larger ones first.

    Outlines move by up to `tolerance` pixels, less for small and thin regions. Regions of fewer
    pixels than `min_area` become part of their surroundings. The class `rest` and ids without a
    name are not drawn.

    Few tools draw polygons with holes. With `stacked`, a region is drawn whole if smaller ones on
    top fill its holes. Other regions with holes become masks.
    """
    # The regions, larger ones first: those inside others come later
    labels = _without_specks(labels, min_area)
    drawn = [index for index in np.unique(labels) if index < len(names) and index != rest]
    regions = [region for index in drawn for region in _regions(labels, index)]
    regions.sort(key=lambda region: int(region.filled.sum()), reverse=True)
    owner = np.full(labels.shape, -1, np.int32)
    for index, region in enumerate(regions):
        own = region.filled & (region.within(labels) == region.class_id)
        region.within(owner)[own] = index  # regions inside it come later

    # Their outlines; what covers the holes of a region goes one layer up
    outlines = _Outlines(labels, owner, regions, tolerance)
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
            shapes.append(Shape(name, [outlines.simplify(rings[0])], z=z))
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
    contours, tree = cv2.findContours(doubled, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    for contour, (_, _, hole, parent) in zip(contours, tree[0]):
        if parent >= 0:
            continue
        rings = [_corners(contour)]
        while hole >= 0:
            rings.append(_corners(contours[hole]))
            hole = tree[0][hole][0]
        border = contour // 2
        column, row, width, height = cv2.boundingRect(border)
        filled = np.zeros((height, width), np.uint8)
        cv2.drawContours(filled, [border - (column, row)], 0, 1, cv2.FILLED)
        yield _Region(int(class_id), rings, filled.astype(bool), (column, row))


def _corners(contour: np.ndarray) -> np.ndarray:
    corners = (contour[:, 0] + 1) // 2
    return corners[(corners != np.roll(corners, 1, axis=0)).any(axis=1)]


class _Outlines:
    """Simplifies outlines between the points where three regions meet; these points stay."""

    def __init__(
        self, labels: np.ndarray, owner: np.ndarray, regions: Sequence[_Region], tolerance: float
    ) -> None:
        around = np.pad(labels.astype(np.int32), 1, constant_values=-1)
        across, down = around[:, 1:] != around[:, :-1], around[1:] != around[:-1]
        # edges between pixels that meet in a corner: two along an outline, else three or four
        edges = across[1:].astype(np.uint8) + across[:-1] + down[:, 1:] + down[:, :-1]
        self._is_junction = edges > 2
        self._owner = np.pad(owner, 1, constant_values=_OUTSIDE)
        areas = np.bincount(owner[owner >= 0], minlength=len(regions))
        lengths = [sum(map(len, region.rings)) for region in regions]
        allowed = np.maximum(_FREE, _RELATIVE_TOLERANCE * areas / np.array(lengths))
        # the last two are for outside the image and for what is not drawn
        self._tolerance = np.minimum(tolerance, [*allowed, tolerance, tolerance])

    def simplify(self, ring: np.ndarray) -> np.ndarray:
        """Simplifies a ring `(N, 2)`, part by part between its junctions."""
        (ends,) = np.nonzero(self._is_junction[ring[:, 1], ring[:, 0]])
        start = ends[0] if len(ends) else np.lexsort(ring.T)[0]  # the same from both sides
        ring = np.roll(ring, -start, axis=0)
        cuts = [*(ends - start), len(ring)] if len(ends) else [0, len(ring)]
        closed = np.concatenate([ring, ring[:1]])
        parts = [self._arc(closed[a : b + 1]) for a, b in pairwise(cuts)]
        simple = np.concatenate([part[:-1] for part in parts])
        return simple if len(simple) > 2 else ring

    def _arc(self, points: np.ndarray) -> np.ndarray:
        """Simplifies what two regions share, in one direction, so that both find the same points.

        Its ends stay. They are one point if the regions share a whole ring.
        """
        ends = points[[0, -1]]
        if (ends[0] == ends[1]).all():
            ends = points[[1, -2]]
            far = int(((points - points[0]) ** 2).sum(axis=1).argmax())
        if tuple(ends[0]) > tuple(ends[1]):
            return self._arc(points[::-1])[::-1]
        if (points[0] == points[-1]).all():
            return np.concatenate([self._arc(points[: far + 1]), self._arc(points[far:])[1:]])
        (column, row), (right, down) = points[:2].min(axis=0), np.abs(points[1] - points[0])
        sides = self._owner[row + down, column + right], self._owner[row + 1, column + 1]
        epsilon = min(self._tolerance[side] for side in sides)
        if epsilon > 0 and _OUTSIDE not in sides:  # middles of edges make slanting lines, no stairs
            points = np.concatenate([points[:1], (points[1:] + points[:-1]) / 2, points[-1:]])
        return cv2.approxPolyDP(points.astype(np.float32)[:, None], epsilon, False)[:, 0]
