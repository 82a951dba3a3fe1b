"""Calibration of pseudo labels: how often they are right, by confidence and by agreement.

A method on pseudo labels has to tell right pixels from wrong ones without their truth. The field
uses the main decoder's confidence; `AgreementGate` uses the share of the K auxiliary decoders that
choose its class. On labelled images both can be compared with the truth.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

# So fine that the order of confidences is kept where most of them are close to 1.
_CONFIDENCE_BINS = 10_000
_SHOWN_BINS = 10
IGNORED = 255


@dataclass(frozen=True)
class Reliability:
    """Right pixels by a score.

    Attributes:
        scores: `(B,)` mean score of each bin, ascending, in [0, 1].
        pixels: `(B,)` pixels in it.
        right: `(B,)` pixels of these that are right.
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
        """Mean distance of a bin's score to its share of right pixels (ECE), by pixels; or NaN."""
        distance = np.abs(self.scores * self.pixels - self.right)
        pixels = float(self.pixels.sum())
        return float(distance.sum()) / pixels if pixels else float('nan')

    def merged(self, bins: int) -> 'Reliability':
        """Joins neighbouring bins, B a multiple of their new number, and leaves out empty ones."""
        pixels, right, total = (
            values.reshape(bins, -1).sum(1)
            for values in (self.pixels, self.right, self.scores * self.pixels)
        )
        kept = pixels > 0
        return Reliability(total[kept] / pixels[kept], pixels[kept], right[kept])


class CalibrationCounts:
    """Pixels, and right ones among them, by both scores of a prediction.

    Args:
        num_decoders: K; 0 where there are none, and no agreement.

    Attributes:
        pixels_and_right: Int64 counts `(2, B)` of each score, in bins of its own.
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
        counted = truth != IGNORED
        right = (labels == truth)[counted]
        for name, counts in self.pixels_and_right.items():
            size = counts.shape[1]
            bins = _bin_of(scores[name][counted], name, size)
            counts[0] += torch.bincount(bins, minlength=size)
            counts[1] += torch.bincount(bins[right], minlength=size)

    def reliability(self) -> dict[str, Reliability]:
        """Gives the counts of each score, in the bins that were counted."""
        centres = (np.arange(_CONFIDENCE_BINS) + 0.5) / _CONFIDENCE_BINS
        found = {}
        for name, counts in self.pixels_and_right.items():
            pixels, right = counts.numpy()
            size = len(pixels)
            scores = centres if name == 'confidence' else np.arange(size) / (size - 1)
            found[name] = Reliability(scores, pixels, right)
        return found


def shown(reliability: Mapping[str, Reliability]) -> dict[str, Reliability]:
    """Joins the bins of the confidence to ten and leaves out empty ones."""
    return {
        name: each.merged(_SHOWN_BINS if name == 'confidence' else len(each.scores))
        for name, each in reliability.items()
    }


def calibration_record(reliability: Mapping[str, Reliability]) -> dict[str, Any]:
    """States the reliability of each score in numbers.

    By score: the three arrays of `Reliability` in the bins of `shown`, its `calibration_error`, and
    its `separation` before bins are joined. Undefined figures are None.
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
    """Bins of confidences have equal width; an agreement is a multiple of 1/K itself."""
    if name == 'agreement':
        return (scores * (size - 1)).round().long()
    return (scores * size).long().clamp(max=size - 1)
