"""F-Noise: multiplicative uniform noise."""

import math

import torch
from mmseg.registry import MODELS
from torch import Tensor
from torch.utils.checkpoint import checkpoint

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
        """Draws 1 + n for one decoder.

        Args:
            features: `(N, D, S)`; gives sizes, type and device.

        Returns:
            `(1, D, S)` in [1 - a, 1 + a].
        """
        size = (1, *features.shape[1:])
        return uniform(size, 1 - self.noise_range, 1 + self.noise_range, features)

    def perturb(self, features: Tensor, decoders: DecoderGroup,
                context: PerturbationContext) -> Tensor:
        """See `Perturbation.perturb`."""
        return torch.stack([features * self.noise(features) for _ in range(self.num_decoders)])

    def project(self, features: Tensor, decoders: DecoderGroup,
                context: PerturbationContext) -> Tensor:
        """One decoder after the other, drawing the noise again in the backward pass.

        Kept noise and perturbed features would be most of what a training step needs.
        """
        return torch.stack([
            checkpoint(self._project_one, features, weight, use_reentrant=False)
            for weight in decoders.projection
        ])

    def _project_one(self, features: Tensor, weight: Tensor) -> Tensor:
        """`(N, D, S)` and one projection `(C, D)` to `(N, C, S)`."""
        return torch.matmul(weight, features * self.noise(features))
