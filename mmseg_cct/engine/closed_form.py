"""A linear discriminant on frozen features: what the masks so far give, before any training.

Shapes: `P` positions of an image, `K` whitened features, of which a fit uses the first `k`, `C`
classes.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from mmseg_cct.datasets.files.labels import IGNORE_INDEX

from .metrics.scores import confusion_of, iou_of

# Directions, of which more labels carry more, and the ridge.
NUM_FEATURES, RIDGES = (32, 48, 64, 96), (0.01, 0.03, 0.1)
_TEMPERATURES = 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0
FEWEST_TO_CHOOSE = 3  # images; from fewer, one that is left out says little
_NO_CLASS = -1e4  # the logit of a class that no mask has, finite so that it can be resized
_PRIOR = 0.5  # weight of the classes' log-frequencies
_MOST = 5.0  # clips -log p, so that a few pixels of a wrong class do not decide
_FEWEST = 10  # cells with a class that other masks have, to judge a mask by
_MOST_CHOSEN_BY = 100  # masks that the setting is chosen by, at most


class Setting(NamedTuple):
    """What one fit does not learn."""

    num_features: int  # k, the main directions of the pool
    ridge: float  # added to the covariance within classes; the pool's variance is 1


SETTINGS = tuple(Setting(*setting) for setting in product(NUM_FEATURES, RIDGES))


class Choice(NamedTuple):
    """What is chosen by leaving out one image at a time."""

    settings: Sequence[Setting] = SETTINGS  # whose fits are averaged, which is steadier than one
    temperature: float = 3.0  # divides the logits, as they are too sure


class Moments(NamedTuple):
    """What a fit needs of labelled positions; those of two sets of images add."""

    counts: np.ndarray  # (C,)
    sums: np.ndarray  # (C, K)
    products: np.ndarray  # (K, K)

    @classmethod
    def of(cls, points: np.ndarray, ids: np.ndarray, num_classes: int) -> 'Moments':
        """Takes features `(P, K)` and class ids `(P,)`, of which 255 is left out."""
        points = points[ids != IGNORE_INDEX].astype(np.float64)
        one_hot = np.eye(num_classes)[ids[ids != IGNORE_INDEX]]
        return cls(one_hot.sum(0), one_hot.T @ points, points.T @ points)


class Discriminant(NamedTuple):
    """A fitted classifier of positions."""

    weights: np.ndarray  # (K, C)
    bias: np.ndarray  # (C,), very low for a class that no mask has

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Computes logits `(..., C)` of whitened features `(..., K)`."""
        logits: np.ndarray = points @ self.weights + self.bias
        return logits

    def confidence(self, points: np.ndarray) -> np.ndarray:
        """Computes the probability of the predicted class, `(...)`."""
        logits = self(points)
        highest = logits.max(-1, keepdims=True)
        probability: np.ndarray = 1 / np.exp(logits - highest).sum(-1)
        return probability


def fit(moments: Moments, choice: Choice) -> Discriminant:
    """Averages the discriminants of the chosen settings, which gives a linear one again."""
    fits = [_fit(moments, setting) for setting in choice.settings]
    weights, bias = (np.mean(part, 0) / choice.temperature for part in zip(*fits))
    return Discriminant(weights, bias)


def _fit(moments: Moments, setting: Setting) -> Discriminant:
    """Fits means of classes with one covariance within them, log p = w·x + b up to a constant."""
    used, total = slice(setting.num_features), max(moments.counts.sum(), 1)
    means = moments.sums[:, used] / np.maximum(moments.counts, 1)[:, None]
    between = (moments.counts[:, None] * means).T @ means
    within = (moments.products[used, used] - between) / total
    weights = np.zeros(moments.sums.T.shape)
    weights[used] = np.linalg.solve(within + setting.ridge * np.eye(len(within)), means.T)
    log_shares = np.log(np.maximum(moments.counts, 1) / total)
    bias = _PRIOR * log_shares - (means.T * weights[used]).sum(0) / 2
    bias[moments.counts == 0] = _NO_CLASS
    return Discriminant(weights, bias)


def without(moments: Sequence[Moments]) -> list[Moments]:
    """Sums the moments of all images but one, for each in turn."""
    totals = [np.sum(part, 0) for part in zip(*moments)]
    return [Moments(*(total - part for total, part in zip(totals, image))) for image in moments]


def ious_of(confusion: np.ndarray) -> np.ndarray:
    """Computes IoU by class `(C,)`; NaN without a label."""
    return np.where(confusion.sum(1) > 0, iou_of(confusion), np.nan)


def choose(
    features: Sequence[np.ndarray], labels: Sequence[np.ndarray], moments: Sequence[Moments]
) -> Choice:
    """Chooses the better half of the settings by mIoU on labelled images, each left out in turn.

    One confusion is counted over all images. (The mean of -log p chooses too strong a ridge, and
    loses half a point of mIoU on other images.) The temperature is the one at which the labels are
    the most likely. Of more than a hundred images, an even sample is left out.

    `features` are `(P, K)` of each image, `labels` class ids or 255, `(P,)`, `moments` of both.
    """
    step = -(-len(features) // _MOST_CHOSEN_BY)
    images = [*zip(features, labels, without(moments))][::step]
    num_classes = len(moments[0].counts)
    if len(images) < FEWEST_TO_CHOOSE or not any(part.counts.any() for part in moments):
        return Choice()

    def miou(setting: Setting) -> float:
        confusion = np.zeros((num_classes, num_classes), np.int64)
        for points, ids, others in images:
            predicted = _fit(others, setting)(points).argmax(1)
            confusion += confusion_of(ids, predicted, num_classes)
        return float(np.nanmean(ious_of(confusion)))

    best = sorted(SETTINGS, key=miou, reverse=True)[: len(SETTINGS) // 2]
    choice = Choice(best, 1.0)
    odds = np.concatenate(
        [log_odds(fit(others, choice)(points), ids, others) for points, ids, others in images]
    )

    def surprise(temperature: float) -> float:
        return float(np.log(np.exp((odds / temperature).clip(max=500)).sum(1)).mean())

    return choice._replace(temperature=min(_TEMPERATURES, key=surprise)) if len(odds) else Choice()


def log_odds(logits: np.ndarray, ids: np.ndarray, others: Moments) -> np.ndarray:
    """Subtracts the label's logit from all, at positions whose class the others have."""
    is_known = ids != IGNORE_INDEX
    is_known[is_known] = others.counts[ids[is_known]] > 0
    known = logits[is_known]
    return known - known[np.arange(len(known)), ids[is_known]][:, None]


class LeftOut(NamedTuple):
    """What a classifier fitted to the other images says of an image."""

    score: float  # mean of -log p of the labels, clipped at 5; 0 if there is too little to judge
    expected: np.ndarray  # class at each position, (P,)
    discriminant: Discriminant  # that classifier


def leave_one_out(
    features: Sequence[np.ndarray],
    labels: Sequence[np.ndarray],
    moments: Sequence[Moments],
    choice: Choice,
) -> list[LeftOut]:
    """Predicts each image by a discriminant that is fitted to all others.

    The score is that of the logits before the temperature divides them.
    """
    judged = []
    for points, ids, others in zip(features, labels, without(moments)):
        discriminant = fit(others, choice)
        logits = discriminant(points) * choice.temperature
        losses = np.log(np.exp(log_odds(logits, ids, others).clip(max=500)).sum(1))
        score = float(losses.clip(max=_MOST).mean()) if len(losses) >= _FEWEST else 0.0
        judged.append(LeftOut(score, logits.argmax(1).astype(np.uint8), discriminant))
    return judged
