"""Outlines of the shapes that tools have besides polygons."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mmseg_cct.errors import UserError

from ..shapes import Shape

Pair = Sequence[float] | np.ndarray  # x and y
_CORNERS = 128  # of the polygon that stands for an ellipse


def points_of(numbers: Any) -> np.ndarray:
    """Makes points `(N, 2)` of alternating x and y, or of pairs.

    Raises:
        UserError: If a number has no partner.
    """
    flat = np.asarray(numbers, float).reshape(-1)
    if flat.size % 2:
        raise UserError('polygon', f'{flat.size} numbers', 'x and y of each point')
    return flat.reshape(-1, 2)


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
