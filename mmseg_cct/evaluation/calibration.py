"""Calibration of pseudo labels: how often they are right, by confidence and by agreement.

A method that learns from pseudo labels has to tell right pixels from wrong ones without the truth.
The usual score is the main decoder's confidence; `AgreementGate` uses the share of the K auxiliary
decoders that choose the same class. On labelled images both can be compared with the truth.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mmseg_cct.utils.labels import IGNORE_INDEX

# Fine enough to keep the order of confidences, most of which are close to 1.
_CONFIDENCE_BINS = 10_000
_SHOWN_BINS = 10


@dataclass(frozen=True)
class Reliability:
    """Counts of pixels, and of right ones among them, by a score.

    Attributes:
        scores: `(B,)` mean score of each bin, ascending, in [0, 1].
        pixels: `(B,)` number of pixels in each bin.
        right: `(B,)` number of right pixels in each bin.
    """

    scores: np.ndarray
    pixels: np.ndarray
    right: np.ndarray

    @property
    def separation(self) -> float:
        """Probability that a right pixel scores above a wrong one, ties half (AUROC); or NaN."""
        wrong = self.pixels - self.right
        below = np.cumsum(wrong) - wrong / 2
        pairs = float(self.right.sum()) * float(wrong.sum())
        return float((self.right * below).sum()) / pairs if pairs else float('nan')

    @property
    def calibration_error(self) -> float:
        """Mean distance of a bin's score from its share of right pixels, weighted by pixels (ECE).

        NaN without pixels.
        """
        distance = np.abs(self.scores * self.pixels - self.right)
        pixels = float(self.pixels.sum())
        return float(distance.sum()) / pixels if pixels else float('nan')

    def merged(self, bins: int) -> 'Reliability':
        """Joins neighbouring bins to `bins`, a divisor of B, and leaves out empty ones."""
        pixels, right, total = (
            values.reshape(bins, -1).sum(1)
            for values in (self.pixels, self.right, self.scores * self.pixels)
        )
        kept = pixels > 0
        return Reliability(total[kept] / pixels[kept], pixels[kept], right[kept])


class CalibrationCounts:
    """Counts pixels, and right ones among them, by confidence and by agreement.

    Args:
        num_decoders: K; with 0 there is no agreement to count.

    Attributes:
        pixels_and_right: For each score, int64 counts `(2, B)` in its own bins.
    """

    def __init__(self, num_decoders: int) -> None:
        sizes = dict(confidence=_CONFIDENCE_BINS)
        if num_decoders:
            sizes['agreement'] = num_decoders + 1
        self.pixels_and_right = {
            name: torch.zeros(2, size, dtype=torch.int64) for name, size in sizes.items()
        }

    def add(self, scores: Mapping[str, Tensor], labels: Tensor, truth: Tensor) -> None:
        """Counts an image: score maps `(H, W)` in [0, 1], class ids `(H, W)`, 255 ignored."""
        counted = truth != IGNORE_INDEX
        right = (labels == truth)[counted]
        for name, counts in self.pixels_and_right.items():
            size = counts.shape[1]
            bins = _bin_of(scores[name][counted], name, size)
            counts[0] += torch.bincount(bins, minlength=size)
            counts[1] += torch.bincount(bins[right], minlength=size)

    def reliability(self) -> dict[str, Reliability]:
        """Returns the counts of each score, in the bins that were counted."""
        centres = (np.arange(_CONFIDENCE_BINS) + 0.5) / _CONFIDENCE_BINS
        found = {}
        for name, counts in self.pixels_and_right.items():
            pixels, right = counts.numpy()
            size = len(pixels)
            scores = centres if name == 'confidence' else np.arange(size) / (size - 1)
            found[name] = Reliability(scores, pixels, right)
        return found


def shown(reliability: Mapping[str, Reliability]) -> dict[str, Reliability]:
    """Joins the bins of the confidence to ten, and leaves out empty bins of both scores."""
    return {
        name: each.merged(_SHOWN_BINS if name == 'confidence' else len(each.scores))
        for name, each in reliability.items()
    }


def calibration_record(reliability: Mapping[str, Reliability]) -> dict[str, Any]:
    """Returns the reliability of each score as numbers.

    For each score: the three arrays of `Reliability` and the `calibration_error` in the bins of
    `shown`, and the `separation` before bins are joined. Undefined figures are None.
    """
    record = {}
    for name, each in shown(reliability).items():
        figures = (reliability[name].separation, each.calibration_error)
        separation, error = (None if np.isnan(value) else value for value in figures)
        record[name] = dict(
            separation=separation,
            calibration_error=error,
            scores=each.scores.tolist(),
            pixels=each.pixels.tolist(),
            right=each.right.tolist(),
        )
    return record


def _bin_of(scores: Tensor, name: str, size: int) -> Tensor:
    """Returns bins of equal width for confidences; an agreement is already a multiple of 1/K."""
    if name == 'agreement':
        return (scores * (size - 1)).round().long()
    return (scores * size).long().clamp(max=size - 1)
