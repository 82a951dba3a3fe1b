import pytest
import torch

from mmseg_cct.models.perturbations import FeatureNoise
from mmseg_cct.models.perturbations.feature_noise import _NoisyProjection


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
    factors = FeatureNoise(3).draw(torch.zeros(2, 5, 7))
    assert torch.equal(factors(1, 2), factors(1, 2))
    assert not torch.equal(*factors(1, 2))
