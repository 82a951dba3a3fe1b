"""Tells boxes that only bound other shapes from regions, as in files of instances."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from .shapes import LeftOut, Shape

_SLACK = 2.0, 0.05  # pixels and share of the sides by which a box may miss what it bounds


def bounding_boxes(parts: Sequence[Shape | LeftOut]) -> list[Shape | LeftOut]:
    """Finds boxes with the extent of a shape of their label or group, or around their group's.

    Coordinates must be pixels.
    """
    members: dict[tuple[object, object], list[np.ndarray]] = defaultdict(list)
    for index, shape in enumerate(parts):
        if isinstance(shape, Shape) and not shape.is_box and shape.has_area:
            keys = [(shape.label, index), (shape.label, shape.group), (None, shape.group)]
            for key in keys[: 1 if shape.group is None else 3]:
                members[key].append(shape.extent)
    bounded = {key: union(extents) for key, extents in members.items()}
    boxes = [part for part in parts if _is_box(part)]
    return [box for box in boxes if any(_bounds(box, *each) for each in bounded.items())]


def _is_box(part: Shape | LeftOut) -> bool:
    return part.is_box if isinstance(part, Shape) else part.kind == 'box'


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
