import pytest
import tiny
import torch

from mmseg_cct.models.perturbations import FeatureNoise

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
    for other in (1, 2):
        correlation = torch.corrcoef(torch.stack([first[0].flatten(), first[other].flatten()]))
        assert abs(correlation[0, 1]) < 5 / first[0].numel() ** 0.5
