"""F-Noise: multiplicative uniform noise."""

import math

import torch
from mmseg.registry import MODELS
from torch import Tensor

from ..decoders import DecoderGroup
from .base import Perturbation, PerturbationContext


def uniform(size: tuple[int, ...], low: float, high: float, like: Tensor) -> Tensor:
    """Draws U(low, high) in 65536 equal steps.

    Each drawn 64-bit number gives four values: a third of the time of `Tensor.uniform_` on a CPU,
    and the noise is what this perturbation costs.

    Args:
        size: Size of the result.
        low: Lower end.
        high: Upper end.
        like: Gives type and device.

    Returns:
        A tensor of that size, strictly inside the range.
    """
    count = math.prod(size)
    bits = torch.empty(-(-count // 4), dtype=torch.int64, device=like.device)
    steps = bits.random_(-2**63, None).view(torch.int16)[:count].view(size)
    step = (high - low) / 2**16
    return steps.to(like.dtype).add_(0.5).mul_(step).add_((low + high) / 2)


@MODELS.register_module()
class FeatureNoise(Perturbation):
    """z~ = z + z ⊙ n with n ~ U(-a, a); one noise tensor serves all images of the batch.

    Args:
        num_decoders: k.
        noise_range: a.
    """

    def __init__(self, num_decoders: int = 6, noise_range: float = 0.3) -> None:
        super().__init__(num_decoders)
        self.noise_range = noise_range

    def noise(self, features: Tensor) -> Tensor:
        """Draws 1 + n.

        Args:
            features: `(N, D, S)`; gives sizes, type and device.

        Returns:
            `(k, 1, D, S)` in [1 - a, 1 + a].
        """
        size = (self.num_decoders, 1, *features.shape[1:])
        return uniform(size, 1 - self.noise_range, 1 + self.noise_range, features)

    def perturb(self, features: Tensor, decoders: DecoderGroup,
                context: PerturbationContext) -> Tensor:
        """See `Perturbation.perturb`."""
        return features * self.noise(features)
