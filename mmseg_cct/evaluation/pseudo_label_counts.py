"""Confident predictions on labelled images, counted as if they were pseudo labels."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from mmseg_cct.utils.labels import IGNORE_INDEX


class PseudoLabelCounts:
    """Counts confident predictions by class, as if they were pseudo labels.

    Args:
        num_classes: C.
        threshold: τ in [0, 1]; pixels of at least this confidence are used.

    Attributes:
        used: Int64 counts `(C, C)` of the used pixels; rows are true classes, columns predicted
            ones.
        pixels: Int64 counts `(C,)` of all pixels by true class.
    """

    def __init__(self, num_classes: int, threshold: float) -> None:
        self.threshold = threshold
        self.used = torch.zeros(num_classes, num_classes, dtype=torch.int64)
        self.pixels = torch.zeros(num_classes, dtype=torch.int64)

    def add(self, confidence: Tensor, labels: Tensor, truth: Tensor) -> None:
        """Counts an image: confidence in [0, 1] and class ids, `(H, W)` each, 255 ignored."""
        counted = truth != IGNORE_INDEX
        used = counted & (confidence >= self.threshold)
        size = len(self.pixels)
        self.pixels += torch.bincount(truth[counted].long(), minlength=size)
        pairs = truth[used].long() * size + labels[used]
        self.used += torch.bincount(pairs, minlength=size**2).view(size, size)

    def record(self, classes: Sequence[str]) -> dict[str, Any]:
        """Returns shares in [0, 1], None without pixels.

        `used` is the share of the pixels that are confident, `right` the share of these that are
        right. `by_class` has the same for the pixels of each true class, and `precise`, the share
        of the pseudo labels of this class that are right.
        """
        hits, by_truth, by_label = self.used.diag(), self.used.sum(1), self.used.sum(0)
        rows = zip(classes, *(v.tolist() for v in (self.pixels, by_truth, by_label, hits)))
        by_class = {
            name: dict(
                used=_share(used, pixels), right=_share(hit, used), precise=_share(hit, called)
            )
            for name, pixels, used, called, hit in rows
        }
        return dict(
            threshold=self.threshold,
            used=_share(int(by_truth.sum()), int(self.pixels.sum())),
            right=_share(int(hits.sum()), int(by_truth.sum())),
            by_class=by_class,
        )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
