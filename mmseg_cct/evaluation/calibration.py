"""Calibration of pseudo labels: how often they are right, by confidence and by agreement.

A method on pseudo labels has to tell right pixels from wrong ones without their truth. The field
asks for the main decoder's confidence; `AgreementGate` for the share of the K auxiliary decoders
that choose its class. On labelled images both can be held against the truth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn import functional as F

from .disagreement import auxiliary_disagreement, batch_of_one

# So fine that the order of confidences is kept where most of them are close to 1.
_CONFIDENCE_BINS = 10_000
_SHOWN_BINS = 10
_IGNORED = 255


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
        """Mean distance of a bin's score to its share of right pixels (ECE), by pixels."""
        distance = np.abs(self.scores * self.pixels - self.right)
        return float(distance.sum() / self.pixels.sum())

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
        """Counts an image.

        Args:
            scores: Maps `(H, W)` in [0, 1], by score.
            labels: Predicted class ids `(H, W)`.
            truth: Class ids `(1, ·, ·)`, 255 where ignored; resized to the labels.
        """
        truth = _at_size(truth, labels.shape)
        counted = truth != _IGNORED
        right = (labels == truth)[counted]
        for name, counts in self.pixels_and_right.items():
            size = counts.shape[1]
            bins = _bin_of(scores[name][counted], name, size)
            counts[0] += torch.bincount(bins, minlength=size)
            counts[1] += torch.bincount(bins[right], minlength=size)

    def reliability(self) -> dict[str, Reliability]:
        """Gives the counts of each score, in the bins that were counted.

        Returns:
            By score.
        """
        centres = (np.arange(_CONFIDENCE_BINS) + 0.5) / _CONFIDENCE_BINS
        found = {}
        for name, counts in self.pixels_and_right.items():
            pixels, right = counts.numpy()
            size = len(pixels)
            scores = centres if name == 'confidence' else np.arange(size) / (size - 1)
            found[name] = Reliability(scores, pixels, right)
        return found


class PseudoLabelCounts:
    """Confident predictions by class, as the pseudo labels that they would be.

    Args:
        num_classes: C.
        threshold: τ in [0, 1]; pixels of at least this confidence are used.

    Attributes:
        used: Int64 counts `(C, C)` of the used pixels, a row a true class, a column a predicted
            one.
        pixels: Int64 counts `(C,)` of all pixels of a true class.
    """

    def __init__(self, num_classes: int, threshold: float) -> None:
        self.threshold = threshold
        self.used = torch.zeros(num_classes, num_classes, dtype=torch.int64)
        self.pixels = torch.zeros(num_classes, dtype=torch.int64)

    def add(self, confidence: Tensor, labels: Tensor, truth: Tensor) -> None:
        """Counts an image.

        Args:
            confidence: `(H, W)` in [0, 1].
            labels: Predicted class ids `(H, W)`.
            truth: Class ids `(1, ·, ·)`, 255 where ignored; resized to the labels.
        """
        truth = _at_size(truth, labels.shape)
        counted = truth != _IGNORED
        used = counted & (confidence >= self.threshold)
        size = len(self.pixels)
        self.pixels += torch.bincount(truth[counted].long(), minlength=size)
        pairs = truth[used].long() * size + labels[used]
        self.used += torch.bincount(pairs, minlength=size**2).view(size, size)

    def record(self, classes: Sequence[str]) -> dict[str, Any]:
        """States shares in [0, 1], None where there is no pixel.

        Args:
            classes: C names.

        Returns:
            The `threshold`; `used`, the share of the pixels that are confident, and `right`, the
            share of these that are right; `by_class` the same of the pixels that truly are of a
            class, and `precise`, how many of the used pixels that are called so are.
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


def shown(reliability: Mapping[str, Reliability]) -> dict[str, Reliability]:
    """Joins the bins of the confidence to ten and leaves out empty ones.

    Args:
        reliability: From `CalibrationCounts.reliability`.

    Returns:
        By score.
    """
    return {
        name: each.merged(_SHOWN_BINS if name == 'confidence' else len(each.scores))
        for name, each in reliability.items()
    }


def calibration_record(reliability: Mapping[str, Reliability]) -> dict[str, Any]:
    """States the reliability of each score in numbers.

    Args:
        reliability: From `CalibrationCounts.reliability`.

    Returns:
        By score, in the bins of `shown`: the three arrays of `Reliability`, its `separation` before
        bins are joined, None where it is undefined, and its `calibration_error`.
    """
    record = {}
    for name, each in shown(reliability).items():
        separation = reliability[name].separation
        record[name] = dict(
            separation=None if np.isnan(separation) else separation,
            calibration_error=each.calibration_error,
            scores=each.scores.tolist(),
            pixels=each.pixels.tolist(),
            right=each.right.tolist(),
        )
    return record


def count_decoders(model: Any) -> int:
    """K, the auxiliary decoders of a model; 0 where it has none."""
    # MMSeg's own auxiliary heads stand under the same name
    return getattr(getattr(model, 'auxiliary_head', None), 'num_decoders', 0)


@torch.no_grad()
def score_maps(
    model: Any, item: dict[str, Any], classes: Sequence[str], seed: int = 0
) -> tuple[dict[str, Tensor], Tensor]:
    """Scores the main decoder's prediction for an image.

    Args:
        model: An `EncoderDecoder` in evaluation mode; the agreement needs a `CCTSegmentor`.
        item: Output of the test pipeline: `inputs (3, H, W)` and `data_samples`.
        classes: C names.
        seed: Seed of the perturbations.

    Returns:
        `confidence` and, with auxiliary decoders, `agreement`, each `(H, W)` in [0, 1]; and the
        predicted class ids `(H, W)`; all on the CPU.
    """
    height, width = item['inputs'].shape[-2:]
    batch = batch_of_one(model, item, classes)
    maps = {}
    if not count_decoders(model):
        seg_logits = model._forward(batch['inputs'])
    else:
        seg_logits, _, flips = auxiliary_disagreement(model, batch, seed)
        maps['agreement'] = 1 - flips[:, 0].mean(0)
        if seg_logits.shape[-2:] != flips.shape[-2:]:  # a main decoder with a stride of its own
            seg_logits = F.interpolate(seg_logits, flips.shape[-2:], mode='bilinear')
    maps['confidence'], maps['labels'] = seg_logits[0].float().softmax(0).max(0)
    padded = batch['inputs'].shape[-2:]  # right and below
    maps = {
        name: _at_size(values[None], padded)[:height, :width].cpu() for name, values in maps.items()
    }
    labels = maps.pop('labels')
    return maps, labels


def plot_reliability(reliability: Mapping[str, Reliability]) -> Figure:
    """Plots the share of right pixels by each score, over bars of the share of the pixels.

    Args:
        reliability: From `CalibrationCounts.reliability`.

    Returns:
        The figure, a panel a score.
    """
    figure = Figure(figsize=(4 * len(reliability), 4), layout='constrained')
    panels = figure.subplots(1, len(reliability), squeeze=False)[0]
    for axes, (name, each) in zip(panels, shown(reliability).items()):
        axes.bar(each.scores, each.pixels / each.pixels.sum(), 0.02, color='0.8', label='pixels')
        axes.plot([0, 1], [0, 1], color='0.5', linestyle=':', label='calibrated')
        axes.plot(each.scores, each.right / each.pixels, 'o-', markersize=3, label='right')
        axes.set_title(f'right above wrong: {reliability[name].separation:.3f}', fontsize=10)
        axes.set_xlabel(name)
        axes.set_ylabel('share')
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(0, 1.02)
        axes.legend(fontsize=8, loc='upper left')
    return figure


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _bin_of(scores: Tensor, name: str, size: int) -> Tensor:
    """Bins of confidences have equal width; an agreement is a multiple of 1/K itself."""
    if name == 'agreement':
        return (scores * (size - 1)).round().long()
    return (scores * size).long().clamp(max=size - 1)


def _at_size(values: Tensor, size: Any) -> Tensor:
    """Resizes values `(1, ·, ·)` by nearest neighbour, `(H, W)` of the same type."""
    resized = F.interpolate(values[None].float(), tuple(size), mode='nearest-exact')
    return resized[0, 0].to(values.dtype)
