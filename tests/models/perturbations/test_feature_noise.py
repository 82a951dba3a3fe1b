import pytest
import tiny
import torch

from mmseg_cct.models.perturbations import FeatureNoise
from mmseg_cct.models.perturbations.feature_noise import _NoisyProjection

K = 3


def noise(noise_range=0.3, channels=200, seed=5):
    """n `(K, N, D, S)` of z + z n."""
    shared = tiny.context(channels=channels)
    shared.features.gt_(0).add_(1)  # 1 or 2, so dividing is exact
    perturbed = tiny.perturb(FeatureNoise(K, noise_range), shared, seed=seed)
    return perturbed / shared.features.flatten(2) - 1


@pytest.mark.parametrize('noise_range', [0.3, 0.05])
def test_noise_is_uniform_in_its_range(noise_range):
    drawn = noise(noise_range)[:, 0]
    assert drawn.abs().max() <= noise_range + 1e-6
    deviation = noise_range / 3**0.5
    assert abs(drawn.mean()) < 5 * deviation / drawn.numel() ** 0.5
    assert drawn.std() == pytest.approx(deviation, rel=0.02)
    counts = torch.histc(drawn, 10, -noise_range, noise_range)
    assert (counts - drawn.numel() / 10).abs().max() < 5 * (drawn.numel() / 10) ** 0.5


def test_one_noise_serves_the_batch_and_each_decoder_has_its_own():
    drawn = noise()
    assert (drawn == drawn[:, :1]).all()
    first = drawn[:, 0]
    assert len(first[0].unique()) > 0.9 * first[0].numel()  # every channel and position
    for later in (1, 2):
        correlation = torch.corrcoef(torch.stack([first[0].flatten(), first[later].flatten()]))
        assert abs(correlation[0, 1]) < 5 / first[0].numel() ** 0.5


@pytest.mark.parametrize('dtype', [torch.float64, torch.bfloat16])
def test_several_decoders_at_once_are_projected_as_one_by_one(dtype):
    z, weight = torch.randn(2, 6, 7, dtype=dtype), torch.randn(5, 3, 6, dtype=dtype)
    factors = torch.rand(5, 1, 6, 7, dtype=dtype)

    def gradients(group_size):
        leaves = [z.clone().requires_grad_(), weight.clone().requires_grad_()]
        projected = _NoisyProjection.apply(*leaves, lambda i, m: factors[i : i + m], group_size)
        return projected, *torch.autograd.grad((projected * projected.detach()).sum(), leaves)

    naive = torch.stack([w @ (z * f) for w, f in zip(weight, factors)])
    one, *of_groups = (gradients(group_size) for group_size in (1, 2, 5))
    torch.testing.assert_close(one[0], naive)
    for grads in of_groups:
        torch.testing.assert_close(grads, one)


def test_noise_of_several_decoders_is_replayed():
    factors = FeatureNoise(K).draw(torch.zeros(2, 5, 7))
    assert torch.equal(factors(1, 2), factors(1, 2))
    assert not torch.equal(*factors(1, 2))
