import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from mmseg_cct.engine.probe import divergence, representative, whitening


def test_the_divergence_is_that_of_gaussians():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(2, 50, 3)) * [1, 2, 0.5] + [0, 1, -1]
    means = points.mean(1)
    seconds = np.einsum('npk,npl->nkl', points, points) / 50
    expected = []
    for each in points:
        covariance = np.cov(each, rowvar=False, bias=True) + 0.01 * np.eye(3)
        gaussian = MultivariateNormal(*map(torch.tensor, (each.mean(0), covariance)))
        pool = MultivariateNormal(torch.zeros(3).double(), torch.eye(3).double())
        expected.append(kl_divergence(gaussian, pool).item())
    assert divergence(means, seconds) == pytest.approx(expected)


def test_whitened_points_have_unit_variance_in_the_main_directions():
    points = np.random.default_rng(0).normal(size=(500, 6)) * [9, 1, 5, 1e-9, 2, 0.1] + 3
    mean, matrix = whitening(points, 3)
    whitened = (points - mean) @ matrix
    assert whitened.mean(0) == pytest.approx([0, 0, 0], abs=1e-9)
    assert np.cov(whitened, rowvar=False) == pytest.approx(np.eye(3), abs=1e-9)
    assert abs(np.corrcoef(whitened[:, 0], points[:, 0])[0, 1]) > 0.99


def test_equal_points_are_whitened_to_numbers():
    mean, matrix = whitening(np.ones((5, 4)), 2)
    assert np.isfinite(matrix).all() and (mean == 1).all()


def moments(images):
    return images.mean(1), np.einsum('npk,npl->nkl', images, images) / images.shape[1]


def test_the_chosen_are_the_draw_that_is_most_like_the_pool():
    images = np.random.default_rng(0).normal(size=(11, 20, 2)) + np.arange(11)[:, None, None] % 3
    chosen = representative(*moments(images), 4, seed=7, num_draws=30)
    points = images.reshape(-1, 2)
    mean, matrix = whitening(points, 2)
    rng, best = np.random.default_rng(7), (np.inf, None)
    for _ in range(30):
        draw = rng.integers([0, 2, 5, 8], [2, 5, 8, 11])
        drawn = (images[draw].reshape(-1, 2) - mean) @ matrix
        # the pool's own spread is counted per point, not per point but one
        drawn *= np.sqrt(len(points) / (len(points) - 1))
        best = min(best, (divergence(*map(np.squeeze, moments(drawn[None]))), draw.tolist()))
    assert chosen.tolist() == best[1]


def test_all_images_can_be_chosen():
    images = np.ones((5, 3, 2))
    assert representative(*moments(images), 5).tolist() == [0, 1, 2, 3, 4]
