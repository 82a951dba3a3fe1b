"""Scores by class from areas in pixels, for metrics and reports alike."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mmseg_cct.datasets.files.labels import is_background


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


def foreground_of(classes: Sequence[str]) -> int | None:
    """Returns the id of the class that a two-class task looks for: 1, or 0 if 1 is the background.

    `None` for another number of classes.
    """
    if len(classes) != 2:
        return None
    return int(not is_background(str(classes[1])))


def _share(part: Any, whole: Any, of_nothing: float) -> Any:
    return np.divide(part, whole, out=np.full(np.shape(whole), of_nothing), where=whole > 0)
