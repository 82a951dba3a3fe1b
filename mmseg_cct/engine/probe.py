"""What frozen features tell before training: sets like the pool, and masks unlike the others.

Shapes: `N` images, `P` positions of an image, `D` features, `K` whitened ones, `C` classes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mmseg_cct.datasets.files.labels import IGNORE_INDEX

_RIDGE = 0.3  # added to the covariance within classes, whose features have variance 1 in the pool
_PRIOR = 0.5  # weight of the classes' log-frequencies
_MOST = 5.0  # clips -log p, so that a few pixels of a wrong class do not decide
_FEWEST = 10  # cells with a class that other masks have, to judge a mask by
_SMOOTHING = 0.01  # of the covariance of a chosen set


def whitening(points: np.ndarray, num_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Finds mean `(D,)` and whitening `(D, K)` of the main directions of points `(N, D)`."""
    return points.mean(0), _whitened(np.cov(points, rowvar=False))[:, ::-1][:, :num_features]


def _whitened(covariance: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(covariance)
    scaled: np.ndarray = vectors / np.sqrt(np.maximum(values, 1e-6 * max(values[-1], 1e-12)))
    return scaled


def divergence(means: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Divergence (Kullback-Leibler) of Gaussians from N(0, I), by mean and second moments."""
    num_features = means.shape[-1]
    covariances = seconds - means[..., :, None] * means[..., None, :]
    covariances = covariances + _SMOOTHING * np.eye(num_features)
    traces = np.trace(covariances, axis1=-2, axis2=-1)
    log_determinants = np.linalg.slogdet(covariances)[1]
    return (traces + (means**2).sum(-1) - num_features - log_determinants) / 2


def representative(
    means: np.ndarray, seconds: np.ndarray, number: int, seed: int = 0, num_draws: int = 100
) -> np.ndarray:
    """Chooses images whose features together are distributed most like those of all; their indices.

    Images are in the order of their names, with mean `(N, K)` and second moments `(N, K, K)` of
    each. A draw takes one from each of as many even strata of that order; the best draw is kept.
    """
    pool_mean, pool_second = means.mean(0), seconds.mean(0)
    matrix = _whitened(pool_second - np.outer(pool_mean, pool_mean))
    crossed = means[:, :, None] * pool_mean
    seconds = seconds - crossed - crossed.transpose(0, 2, 1) + np.outer(pool_mean, pool_mean)
    means, seconds = (means - pool_mean) @ matrix, matrix.T @ seconds @ matrix
    ends = np.arange(number + 1) * len(means) // number
    rng = np.random.default_rng(seed)
    draws = np.array([rng.integers(ends[:-1], ends[1:]) for _ in range(num_draws)])
    scores = [divergence(means[draw].mean(0), seconds[draw].mean(0)) for draw in draws]
    chosen: np.ndarray = draws[int(np.argmin(scores))]
    return chosen


class LeftOut(NamedTuple):
    """What a classifier fitted to the other images says of an image."""

    score: float  # mean of -log p of the labels, clipped at 5; 0 if there is too little to judge
    expected: np.ndarray  # class at each position, (P,)


def leave_one_out(
    features: Sequence[np.ndarray], labels: Sequence[np.ndarray], num_classes: int
) -> list[LeftOut]:
    """Predicts each image by a linear discriminant that is fitted to all others.

    `features` are whitened, `(P, K)` of each image; `labels` are class ids or 255, `(P,)`.
    """
    sums = [_sums(*image, num_classes) for image in zip(features, labels)]
    totals = [np.sum(part, 0) for part in zip(*sums)]
    judged = []
    for points, ids, own in zip(features, labels, sums):
        counts, *moments = (total - part for total, part in zip(totals, own))
        logits = _logits(points, counts, *moments)
        is_known = ids != IGNORE_INDEX
        is_known[is_known] = counts[ids[is_known]] > 0
        known = logits[is_known] - logits[is_known].max(1, keepdims=True)
        of_label = known[np.arange(len(known)), ids[is_known]]
        losses = (np.log(np.exp(known).sum(1)) - of_label).clip(max=_MOST)
        score = float(losses.mean()) if len(losses) >= _FEWEST else 0.0
        judged.append(LeftOut(score, logits.argmax(1).astype(np.uint8)))
    return judged


def _sums(points: np.ndarray, ids: np.ndarray, num_classes: int) -> tuple[np.ndarray, ...]:
    """Counts `(C,)`, sums `(C, K)` and products `(K, K)` of an image, which are all a fit needs."""
    points = points[ids != IGNORE_INDEX].astype(np.float64)
    one_hot = np.eye(num_classes)[ids[ids != IGNORE_INDEX]]
    return one_hot.sum(0), one_hot.T @ points, points.T @ points


def _logits(
    points: np.ndarray, counts: np.ndarray, sums: np.ndarray, products: np.ndarray
) -> np.ndarray:
    """Log-probabilities `(P, C)`, up to a constant, of a discriminant with these statistics."""
    total, means = max(counts.sum(), 1), sums / np.maximum(counts, 1)[:, None]
    covariance = (products - (counts[:, None] * means).T @ means) / total
    weights = np.linalg.solve(covariance + _RIDGE * np.eye(len(covariance)), means.T)
    with np.errstate(divide='ignore'):  # a class that none of them has stays at -inf
        bias = _PRIOR * np.log(counts / total) - (means.T * weights).sum(0) / 2
    logits: np.ndarray = points @ weights + bias
    return logits
