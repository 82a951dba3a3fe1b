"""Scores by class from areas in pixels, for metrics and reports alike."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mmseg_cct.datasets.files.labels import IGNORE_INDEX, is_background


def scores_of(intersection: Any, predicted: Any, truth: Any) -> dict[str, Any]:
    """Returns the scores by name, each `(…, C)` in [0, 1]; a new one is a line here.

    Args:
        intersection: Pixels of each class that are predicted as it, `(…, C)`.
        predicted: Pixels that are predicted as each class, `(…, C)`.
        truth: Pixels of each class, `(…, C)`.

    Returns:
        IoU, nan for a class that neither occurs nor is predicted; F1, precision and recall, 0
        where nothing is predicted or there is nothing to find.
    """
    return {
        'IoU': _share(intersection, predicted + truth - intersection, np.nan),
        'F1': _share(2 * intersection, predicted + truth, 0.0),
        'precision': _share(intersection, predicted, 0.0),
        'recall': _share(intersection, truth, 0.0),
    }


def confusion_of(truth: np.ndarray, predicted: np.ndarray, num_classes: int) -> np.ndarray:
    """Counts positions by true and predicted class `(C, C)`, without those that are 255."""
    known = truth != IGNORE_INDEX
    pairs = truth[known].astype(np.int64) * num_classes + predicted[known]
    counts = np.bincount(pairs, minlength=num_classes**2)
    return counts.reshape(num_classes, num_classes)


def iou_of(confusion: np.ndarray) -> np.ndarray:
    """Computes IoU `(…, C)` in [0, 1] from a confusion `(…, C, C)`, as `scores_of`."""
    right = np.diagonal(confusion, axis1=-2, axis2=-1)
    iou: np.ndarray = scores_of(right, confusion.sum(-2), confusion.sum(-1))['IoU']
    return iou


def foreground_of(classes: Sequence[str]) -> int | None:
    """Returns the id of the class that a two-class task looks for: 1, or 0 if 1 is the background.

    `None` for another number of classes.
    """
    if len(classes) != 2:
        return None
    return int(not is_background(str(classes[1])))


def _share(part: Any, whole: Any, of_nothing: float) -> Any:
    return np.divide(part, whole, out=np.full(np.shape(whole), of_nothing), where=whole > 0)
