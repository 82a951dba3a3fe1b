"""An image of a batch with its prediction and disagreement."""

from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np

from .windows import Window


@dataclass(frozen=True)
class BatchImage:
    """An image of a batch, with pictures at the size that the page shows.

    Attributes:
        name: Path in the batch's folder of images.
        rank: Rank by disagreement among all images, from 1.
        score: Mean disagreement.
        photo: `(H, W, 3)` uint8, RGB.
        labels: Predicted class ids `(H, W)`, 255 outside the windows.
        disagreement: Mean over the decoders, `(h, w)`, at the size of the network's input.
        size: Width and height of the original image.
        windows: Parts to label, in pixels of the original image; without any, all of it.
    """

    name: PurePath
    rank: int
    score: float
    photo: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    disagreement: np.ndarray = field(repr=False)
    size: tuple[int, int]
    windows: list[Window] = field(default_factory=list)


def highest_disagreement(batch: list[BatchImage]) -> float:
    """Returns the upper end of the scale that all maps of a batch share."""
    return max((float(np.quantile(each.disagreement, 0.99)) for each in batch), default=0) or 1.0
