"""F-Noise: multiplicative uniform noise on z."""

from collections.abc import Callable
from typing import Any

import torch
from mmseg.registry import MODELS
from torch import Tensor
from torch.autograd.function import once_differentiable

from mmseg_cct.models.layers.stacked_decoders import DecoderGroup
from mmseg_cct.utils.ranges import in_unit, ranges

from .base import Perturbation, PerturbationContext


class _NoisyProjection(torch.autograd.Function):
    """W_k (z ⊙ f_k) for each decoder; the backward pass draws the factors f_k again.

    Keeping K factors and perturbed features would take most of a step's memory.
    """

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, factors: Callable[[int], Tensor]
    ) -> Tensor:
        """Maps `(N, D, S)` and `(k, B, D)` to `(k, N, B, S)`; `factors(i)` is `(1, D, S)`."""
        ctx.save_for_backward(features, weight)
        ctx.factors = factors
        weights = weight.unsqueeze(1).expand(-1, len(features), -1, -1)  # bmm transposes nothing
        first = torch.bmm(weights[0], features * factors(0))
        projected = first.new_empty(len(weight), *first.shape)
        projected[0] = first
        for k in range(1, len(weight)):
            projected[k] = torch.bmm(weights[k], features * factors(k))
        return projected

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        """Accumulates over the decoders in place."""
        features, weight = ctx.saved_tensors
        grad_features, grad_weight = torch.zeros_like(features), torch.empty_like(weight)
        for k, grad_k in enumerate(grad):
            factor = ctx.factors(k)
            perturbed = (features * factor).to(grad.dtype)
            grad_weight[k] = torch.bmm(grad_k, perturbed.transpose(1, 2)).sum(0)
            transposed = weight[k].to(grad.dtype).T.expand(len(features), -1, -1)
            pulled_back = torch.bmm(transposed, grad_k)
            grad_features.addcmul_(pulled_back.to(features.dtype), factor)
        return grad_features, grad_weight, None


@MODELS.register_module()
class FeatureNoise(Perturbation):
    """z~ = z + z ⊙ n with n ~ U(-a, a), one noise tensor for all images of the batch.

    Args:
        num_decoders: k, the number of decoders with this perturbation.
        noise_range: a in [0, 1]; above 1, z could change its sign.
    """

    @ranges(noise_range=in_unit)
    def __init__(self, num_decoders: int = 6, noise_range: float = 0.3) -> None:
        super().__init__(num_decoders)
        self.noise_range = noise_range

    def draw(self, features: Tensor) -> Callable[[int], Tensor]:
        """Draws a seed for the noise of all decoders on features `(N, D, S)`.

        Returns a replayable function from a decoder's index to its factors 1 + n, `(1, D, S)` in
        [1 - a, 1 + a].
        """
        # a seed on the host: no state of the GPU's generator to save and restore
        seed = int(torch.randint(2**48, ()))
        generator = torch.Generator(features.device)
        count = features[0].numel()
        step = 2 * self.noise_range / 2**16

        def factors(decoder: int) -> Tensor:
            # 65536 equal steps strictly inside the range, four from each draw of 64 bits: a third
            # of the time of `uniform_` on a CPU, and the noise is what this perturbation costs
            generator.manual_seed(seed + decoder)
            bits = torch.empty(-(-count // 4), dtype=torch.int64, device=features.device)
            bits.random_(-(2**63), None, generator=generator)
            steps = bits.view(torch.int16)[:count].view_as(features[:1])
            return steps.to(features.dtype).add_(0.5).mul_(step).add_(1.0)

        return factors

    def perturb(self, decoders: DecoderGroup, context: PerturbationContext) -> Tensor:
        features = context.chosen_features
        factors = self.draw(features)
        return torch.stack([features * factors(k) for k in range(self.num_decoders)])

    def project(self, decoders: DecoderGroup, context: PerturbationContext) -> Tensor:
        """Perturbs and projects for one decoder at a time; see `_NoisyProjection`."""
        features = context.chosen_features
        return _NoisyProjection.apply(features, decoders.projection, self.draw(features))
