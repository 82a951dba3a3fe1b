"""Main directions of frozen features, and sets of images that are distributed like all of them.

Shapes: `N` images, `P` positions of an image, `D` features, `K` whitened ones.
"""

import numpy as np

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
