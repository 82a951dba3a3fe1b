"""Chooses the most confident pixels of each class in a prediction as pseudo labels.

The confidence p of a pixel is kept in a byte, as -log2(1 - p) in sixteenths. With equal steps of p
itself, most pixels would fall into the last step.
"""

from collections.abc import Sequence

import numpy as np

from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.utils.templates import Table

LEVELS = 256
_PER_BIT = 16


def levels_of(confidence: np.ndarray) -> np.ndarray:
    """Quantises confidences in [0, 1] to uint8 levels, which keep their order."""
    doubt = np.maximum(1.0 - confidence.astype(np.float64), 2.0 ** (-LEVELS / _PER_BIT))
    return np.minimum(-np.log2(doubt) * _PER_BIT, LEVELS - 1).astype(np.uint8)


def confidence_of(level: int) -> float:
    """Returns the least confidence of a level, in [0, 1)."""
    return 1.0 - 2.0 ** (-level / _PER_BIT)


def count_levels(labels: np.ndarray, levels: np.ndarray, num_classes: int) -> np.ndarray:
    """Counts pixels by class and level, `(C, 256)`; both inputs are uint8 of the same shape."""
    index = labels.astype(np.int64) * LEVELS + levels
    return np.bincount(index.ravel(), minlength=num_classes * LEVELS).reshape(num_classes, LEVELS)


def count_right(
    labels: np.ndarray, levels: np.ndarray, truth: np.ndarray, num_classes: int
) -> np.ndarray:
    """Counts pixels with a truth, and right ones, by predicted class and level, `(2, C, 256)`.

    All inputs are `(H, W)`; pixels whose truth is 255 do not count.
    """
    seen = truth != IGNORE_INDEX
    right = seen & (labels == truth)
    return np.stack([count_levels(labels[at], levels[at], num_classes) for at in (seen, right)])


def cuts_by_share(pixels: np.ndarray, dropped: float) -> np.ndarray:
    """Finds the level `(C,)` of each class from which on its pixels teach.

    At most the share `dropped`, in [0, 1), of the pixels `(C, 256)` of a class does not teach.
    """
    below = np.cumsum(pixels, 1) <= dropped * pixels.sum(1, keepdims=True)
    return np.where(pixels.any(1), below.sum(1), 0)


def masks_of(labels: np.ndarray, levels: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Keeps the labels `(H, W)` uint8 of sure pixels; the others are 255."""
    return np.where(levels >= cuts[labels], labels, np.uint8(IGNORE_INDEX))


def precision_table(
    classes: Sequence[str], pixels: np.ndarray, cuts: np.ndarray, held_out: np.ndarray | None
) -> Table:
    """Lists how much of each predicted class teaches, and how much of that is right.

    `pixels` are the counts `(C, 256)` of the images to label; `held_out` are those of pixels and of
    right pixels, `(2, C, 256)`, of images with a truth, or None.
    """
    columns = [pixels.sum(1) / max(pixels.sum(), 1), kept_share(pixels, cuts)]
    header = ['predicted class', 'pixels', 'kept', 'lowest confidence']
    if held_out is not None:
        header += ['right', 'right among kept']
        columns += [_share(*held_out), _share(*(held_out * _teaching(cuts)))]
    rows = []
    for index, name in enumerate(classes):
        cells = ['–' if np.isnan(column[index]) else f'{column[index]:.1%}' for column in columns]
        cells.insert(2, f'{confidence_of(int(cuts[index])):.4g}')
        rows.append([name, *cells])
    return Table(header, rows)


def kept_share(counts: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Returns the share `(C,)` of counts `(C, 256)` at or above a class's cut; NaN without any."""
    return _share(counts, counts * _teaching(cuts))


def _teaching(cuts: np.ndarray) -> np.ndarray:
    """Whether pixels of a class and level teach, `(C, 256)`."""
    return np.arange(LEVELS) >= cuts[:, None]


def _share(counts: np.ndarray, part: np.ndarray) -> np.ndarray:
    return ratio(part.sum(1), counts.sum(1))


def ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Divides numbers of pixels `(C,)`; NaN where there are none."""
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
