"""F1, precision and recall of the class that a two-class task looks for."""

from collections.abc import Sequence

from mmseg_cct.datasets.files.labels import is_background


def foreground_of(classes: Sequence[str]) -> int | None:
    """Returns the id of the class that a two-class task looks for: 1, or 0 if 1 is the background.

    `None` for another number of classes.
    """
    if len(classes) != 2:
        return None
    return int(not is_background(str(classes[1])))


def detection_scores(intersection: float, predicted: float, truth: float) -> dict[str, float]:
    """Returns F1, precision and recall of a class in percent, from numbers of pixels.

    `intersection` are those of the class that are predicted as it. A score is 0 where nothing is
    predicted or there is nothing to find.
    """
    # numbers of pixels are whole, so that 1 stands for nothing
    return {
        'F1': 200 * intersection / max(predicted + truth, 1),
        'precision': 100 * intersection / max(predicted, 1),
        'recall': 100 * intersection / max(truth, 1),
    }
