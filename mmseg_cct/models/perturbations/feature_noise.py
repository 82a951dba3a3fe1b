"""F-Noise: multiplicative uniform noise on z."""

from collections.abc import Callable
from typing import Any

import torch
from mmseg.registry import MODELS
from torch import Tensor
from torch.autograd.function import once_differentiable

from mmseg_cct.models.layers.chunking import join
from mmseg_cct.models.layers.stacked_decoders import DecoderGroup
from mmseg_cct.utils.ranges import in_unit, ranges

from .base import Perturbation, PerturbationContext


class _NoisyProjection(torch.autograd.Function):
    """W_k (z ⊙ f_k) for a group of decoders at once; the backward pass draws factors f_k again.

    Keeping K factors and perturbed features would take most of a step's memory.
    """

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        factors: Callable[[int, int], Tensor],
        group_size: int,
    ) -> Tensor:
        """Maps `(N, D, S)` and `(k, B, D)` to `(k, N, B, S)`; `factors(i, m)` is `(m, 1, D, S)`."""
        ctx.save_for_backward(features, weight)
        ctx.factors, ctx.group_size = factors, group_size
        projected = None
        for first in range(0, len(weight), group_size):
            group = weight[first : first + group_size]
            perturbed = (features * factors(first, len(group))).flatten(0, 1)
            # bmm transposes nothing
            expanded = group.unsqueeze(1).expand(-1, len(features), -1, -1).flatten(0, 1)
            part = torch.bmm(expanded, perturbed).unflatten(0, (len(group), len(features)))
            if len(group) == len(weight):
                return part
            if projected is None:
                projected = part.new_empty(len(weight), *part.shape[1:])
            projected[first : first + group_size] = part
        return projected

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """Accumulates over the decoders in place."""
        features, weight = ctx.saved_tensors
        grad_features, grad_weight = None, []
        for first in range(0, len(weight), ctx.group_size):
            chosen = slice(first, first + ctx.group_size)
            shape = grad[chosen].shape[:2]
            grad_group = grad[chosen].flatten(0, 1)
            factors = ctx.factors(first, shape[0])
            perturbed = (features * factors).to(grad.dtype).flatten(0, 1)
            product = torch.bmm(grad_group, perturbed.transpose(1, 2))
            grad_weight.append(product.unflatten(0, shape).sum(1))
            transposed = weight[chosen].to(grad.dtype).transpose(1, 2).unsqueeze(1)
            expanded = transposed.expand(-1, len(features), -1, -1).flatten(0, 1)
            grad_perturbed = torch.bmm(expanded, grad_group).to(features.dtype)
            for grad_decoder, factor in zip(grad_perturbed.unflatten(0, shape), factors):
                if grad_features is None:
                    grad_features = grad_decoder * factor
                else:
                    grad_features.addcmul_(grad_decoder, factor)
        return grad_features, join(grad_weight), None, None


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

    def draw(self, features: Tensor) -> Callable[[int, int], Tensor]:
        """Draws a seed for the noise of all decoders on features `(N, D, S)`.

        Returns a replayable function from the index of a decoder and a number m to the factors
        1 + n of m decoders from it on, `(m, 1, D, S)` in [1 - a, 1 + a].
        """
        # a seed on the host: no state of the GPU's generator to save and restore
        seed = int(torch.randint(2**48, ()))
        generator = torch.Generator(features.device)
        step = 2 * self.noise_range / 2**16

        def factors(first: int, num_decoders: int) -> Tensor:
            # 65536 equal steps strictly inside the range, four from each draw of 64 bits: a third
            # of the time of `uniform_` on a CPU, and the noise is what this perturbation costs
            generator.manual_seed(seed + first)
            count = num_decoders * features[0].numel()
            bits = torch.empty(-(-count // 4), dtype=torch.int64, device=features.device)
            bits.random_(-(2**63), None, generator=generator)
            steps = bits.view(torch.int16)[:count].view(num_decoders, 1, *features.shape[1:])
            return steps.to(features.dtype).add_(0.5).mul_(step).add_(1.0)

        return factors

    def perturb(self, decoders: DecoderGroup, context: PerturbationContext) -> Tensor:
        features = context.chosen_features
        factors = self.draw(features)
        return torch.cat([features * factors(k, 1) for k in range(self.num_decoders)])

    def project(self, decoders: DecoderGroup, context: PerturbationContext) -> Tensor:
        """Perturbs and projects for a few decoders at a time; see `_NoisyProjection`."""
        features = context.chosen_features
        group_size = decoders.chunking.copies(features)
        factors = self.draw(features)
        return _NoisyProjection.apply(features, decoders.projection, factors, group_size)
