"""Distinguishable colours for classes that have none."""

from functools import cache

import cv2
import numpy as np

# Neither near black, which marks padding, nor near white, which marks ignored pixels.
_LEVELS = np.arange(32, 240, 23)
_FIRST = (70, 90, 120)


@cache
def _farthest_first(count: int) -> tuple[tuple[int, int, int], ...]:
    rgb = np.stack(np.meshgrid(_LEVELS, _LEVELS, _LEVELS, indexing='ij'), -1).reshape(-1, 3)
    rgb = np.concatenate([[_FIRST], rgb]).astype(np.float32)
    lab = cv2.cvtColor(rgb[None] / 255, cv2.COLOR_RGB2LAB)[0]
    chosen, distance = [0], np.full(len(rgb), np.inf, np.float32)
    while len(chosen) < count:
        distance = np.minimum(distance, np.linalg.norm(lab - lab[chosen[-1]], axis=1))
        chosen.append(int(distance.argmax()))
    return tuple(tuple(int(value) for value in rgb[index]) for index in chosen)  # type: ignore[misc]


def distinct_colours(count: int) -> list[tuple[int, int, int]]:
    """Gives up to 730 RGB colours in [0, 255]; the first do not depend on the number.

    Each is the farthest in CIELAB from all before it.
    """
    return list(_farthest_first(count)[:count])
