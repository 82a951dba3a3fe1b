"""Chooses points that lie far from one another."""

import numpy as np


def farthest_first(points: np.ndarray, number: int, given: np.ndarray | None = None) -> list[int]:
    """Returns the indices of up to `number` points `(M, D)`, each the farthest from all before it.

    Distances are measured from the `given` points `(L, D)` too; without any, the first is point 0.
    Ties go to the lower index. (Gonzalez 1985; for labelling: https://arxiv.org/abs/1708.00489.)
    """
    nearest = np.full(len(points), np.inf)
    for point in () if given is None else given:
        nearest = np.minimum(nearest, _distances(points, point))
    chosen: list[int] = []
    for _ in range(min(number, len(points))):
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, _distances(points, points[chosen[-1]]))
        nearest[chosen[-1]] = -1.0  # below 0, the distance of a copy
    return chosen


def _distances(points: np.ndarray, point: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points - point, axis=1)
