import pytest
import tiny
import torch

from mmseg_cct.models.perturbations import FeatureDrop, PerturbationContext


def naive(z, gamma):
    """One image `(D, h, w)`, position by position."""
    out = z.clone()
    attention = [[z[:, y, x].sum() / len(z) for x in range(z.shape[2])] for y in range(z.shape[1])]
    largest = max(max(row) for row in attention)
    for y, row in enumerate(attention):
        for x, value in enumerate(row):
            if value >= gamma * largest:
                out[:, y, x] = 0
    return out


@pytest.mark.parametrize('gamma', [0.0, 0.6, 0.9])
def test_zeroes_the_positions_at_or_above_the_threshold(gamma):
    shared = tiny.context(torch.float64)
    perturbed = tiny.perturb(FeatureDrop(2, (gamma, gamma)), shared).unflatten(-1, (tiny.H, tiny.W))
    for image, z in enumerate(shared.features):
        expected = naive(z, gamma)
        assert 0 < (expected == 0).all(0).sum() <= tiny.H * tiny.W
        torch.testing.assert_close(perturbed[0, image], expected)
        torch.testing.assert_close(perturbed[1, image], expected)


def test_draws_each_threshold_uniformly_for_each_image_and_decoder():
    # attention rises evenly from 0 to 1, so the share of positions kept is γ itself
    num_images, k = 40, 50
    z = torch.linspace(0, 1, 1001).expand(num_images, 1, 1, -1)
    shared = PerturbationContext(z, torch.zeros(num_images, 2, 1, 1001), [0])
    kept = tiny.perturb(FeatureDrop(k, (0.6, 0.9)), shared) > 0
    gamma = kept.float().mean(-1).flatten()
    assert gamma.min() >= 0.599 and gamma.max() <= 0.901
    assert gamma.mean() == pytest.approx(0.75, abs=5 * 0.3 / 12**0.5 / (num_images * k) ** 0.5)
    assert gamma.std() == pytest.approx(0.3 / 12**0.5, rel=0.05)
    assert len(gamma.unique()) > 200


def test_features_below_zero_are_dropped_by_their_size():
    """As those of a neck without a ReLU, where the largest channel mean may be negative."""
    z = -torch.linspace(0.1, 1, 10).expand(1, 3, 1, -1)
    shared = PerturbationContext(z, torch.zeros(1, 2, 1, 10), [0])
    dropped = (tiny.perturb(FeatureDrop(1, (0.75, 0.75)), shared) == 0).all(2).flatten()
    assert dropped.tolist() == [False] * 7 + [True] * 3


def test_a_dead_image_stays_finite():
    shared = PerturbationContext(torch.zeros(2, 3, 4, 4), torch.zeros(2, 2, 4, 4), [0])
    assert (tiny.perturb(FeatureDrop(2), shared) == 0).all()
