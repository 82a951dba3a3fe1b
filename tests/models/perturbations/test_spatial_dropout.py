import pytest
import tiny
import torch

from mmseg_cct.models.perturbations import SpatialDropout

K = 6


def factors(drop_ratio, channels=400, seed=5):
    """What each value of z is multiplied by, `(K, N, D, S)`."""
    shared = tiny.context(channels=channels)
    shared.features.gt_(0).add_(1)  # 1 or 2, so dividing is exact
    perturbed = tiny.perturb(SpatialDropout(K, drop_ratio), shared, seed=seed)
    return perturbed / shared.features.flatten(2)


@pytest.mark.parametrize('drop_ratio', [0.2, 0.9])
def test_drops_its_share_of_whole_channels_and_scales_the_others(drop_ratio):
    drawn = factors(drop_ratio)
    assert (drawn == drawn[..., :1]).all()  # a channel as a whole
    channels = drawn[..., 0]
    dropped = channels == 0
    torch.testing.assert_close(channels[~dropped].unique(), torch.tensor([1 / (1 - drop_ratio)]))
    sigma = (drop_ratio * (1 - drop_ratio) / channels.numel()) ** 0.5
    assert abs(dropped.float().mean() - drop_ratio) < 5 * sigma
    # each decoder and each image on its own
    assert len({tuple(row) for row in dropped.flatten(0, 1).tolist()}) == K * tiny.N
