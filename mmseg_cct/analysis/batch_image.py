"""What is shown of an image that is to be labelled next."""

from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np

from .windows import Window


@dataclass(frozen=True)
class BatchImage:
    """An image of a batch, with pictures that are as large as a page shows them.

    Attributes:
        name: Path in the batch's folder of images.
        rank: Its place by disagreement among all images, from 1.
        score: Mean disagreement.
        photo: `(H, W, 3)` uint8, RGB.
        labels: Predicted class ids `(H, W)`, those outside the windows among them.
        disagreement: Mean over the decoders, `(h, w)`, of the image as the network saw it.
        size: Width and height of the image itself.
        windows: What is to be labelled of it, in its own pixels; all of it where there are none.
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
    """The end of the scale that all maps of a batch share."""
    return max((float(np.quantile(each.disagreement, 0.99)) for each in batch), default=0) or 1.0
