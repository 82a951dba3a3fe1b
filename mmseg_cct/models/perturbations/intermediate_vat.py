"""I-VAT: virtual adversarial perturbation of z, supplement G of the paper."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from mmseg.registry import MODELS
from torch import Tensor

from mmseg_cct.models.layers.chunking import join, split_positions
from mmseg_cct.models.layers.native_chain import native_chain
from mmseg_cct.models.layers.stacked_decoders import (
    Chain,
    DecoderGroup,
    as_seg_logits,
    decode_levels,
    softmax,
)
from mmseg_cct.utils.ranges import number, ranges

from .base import Perturbation, PerturbationContext


@dataclass(frozen=True)
class FisherProduct:
    """Hessian of KL(decode(x) ‖ decode(x + r)) at r = 0, times a tangent.

    To first order in ξ it equals the divergence's gradient at r = ξ · tangent, divided by ξ. That
    finite difference is lost in rounding: at ξ = 1e-6 a float32 activation of order 1 changes by
    less than its last bit. Hashable by value, so that it is compiled once.
    """

    final_activation: bool

    def __call__(
        self,
        projected: Tensor,
        tangent: Tensor,
        weights: Sequence[Tensor],
        biases: Sequence[Tensor],
    ) -> Tensor:
        """Computes the product, `(k, B, p)` like x (`projected`) and the tangent."""
        chain = Chain(weights, biases, self.final_activation)
        outputs = decode_levels(projected, chain)
        change = tangent
        for level, weight in enumerate(weights):  # forward, to first order
            change = torch.bmm(weight, change.reshape(len(weight), weight.shape[-1], -1))
            change = chain.where_active(level, change, outputs)
        p, change = softmax(as_seg_logits(outputs[-1], chain)), as_seg_logits(change, chain)
        # (diag p - p pᵀ) · change
        force = torch.ops.aten._softmax_backward_data(change, p, 1, p.dtype)
        for level, weight in reversed(list(enumerate(weights))):  # and back
            force = chain.where_active(level, force.reshape(outputs[level + 1].shape), outputs)
            force = torch.bmm(weight.mT, force)
        return force.reshape(projected.shape)


@MODELS.register_module()
class IntermediateVAT(Perturbation):
    """z~ = z + r_adv, the perturbation of length ε that changes the prediction the most.

    r_adv = ε g/‖g‖ per image, where g is the gradient of the KL divergence between the decoder's
    clean and noisy output with respect to the noise: one power iteration. A decoder sees z only
    through its projection W, so g = Wᵀu with u of B channels, and the computation needs only B
    channels: W r ~ N(0, W Wᵀ) is drawn directly, ‖g‖² = uᵀ(W Wᵀ)u, and W r_adv = (W Wᵀ)u · ε/‖g‖.
    It never runs in 16 bits.

    Args:
        num_decoders: k, the number of decoders with this perturbation.
        epsilon: ε, the L2 norm of r_adv over one image's z.
        xi: ξ, the L2 norm of the probing noise. It cancels unless `norm_floor` is set.
        norm_floor: Added to ‖g‖ in the normalisation. 0 is exact; the public code's 1e-8 makes
            r_adv much shorter than ε where g is small.
    """

    projects_z = True

    @ranges(epsilon=number(0))
    def __init__(
        self, num_decoders: int = 2, epsilon: float = 2.0, xi: float = 1e-6, norm_floor: float = 0.0
    ) -> None:
        super().__init__(num_decoders)
        self.epsilon = epsilon
        self.xi = xi
        self.norm_floor = norm_floor

    def perturb(self, decoders: DecoderGroup, context: PerturbationContext) -> Tensor:
        features = context.chosen_features
        with torch.autocast(features.device.type, enabled=False):
            decoders = decoders.as_float()
            weight = decoders.projection.detach()
            direction = self._adversarial(decoders, context, weight @ weight.mT)
            return features + weight.mT.unsqueeze(1) @ direction

    def project(self, decoders: DecoderGroup, context: PerturbationContext) -> Tensor:
        """See `Perturbation.project`: W(z + r_adv) = Wz + W r_adv, with r_adv a constant."""
        features = context.chosen_features
        with torch.autocast(features.device.type, enabled=False):
            decoders = decoders.as_float()
            weight = decoders.projection
            clean = decoders.project(features.to(weight.dtype))
            gram = weight @ weight.detach().mT
            direction = self._adversarial(decoders, context, gram.detach())
            return clean + gram.unsqueeze(1) @ direction

    @torch.no_grad()
    def _adversarial(
        self, decoders: DecoderGroup, context: PerturbationContext, gram: Tensor
    ) -> Tensor:
        """Computes ε u/‖g‖, `(k, N, B, S)`; Wᵀ maps it to r_adv. `gram` is W Wᵀ."""
        features = context.features.detach().to(gram.dtype)
        n, d, h, w = features.shape
        clean = decoders.project(features.flatten(2))  # (k, N, B, h·w)
        # a probe of unit length: a Gaussian vector of D·h·w values has a length of about √(D·h·w)
        tangent = _projected_noise(decoders.projection, clean) / (d * h * w) ** 0.5
        clean, tangent = (t.transpose(1, 2).flatten(2) for t in (clean, tangent))  # (k, B, N·h·w)
        tiny, eps = torch.finfo(clean.dtype).tiny, torch.finfo(clean.dtype).eps
        least = eps * gram.diagonal(dim1=-2, dim2=-1).amax(-1).sqrt()[:, None, None, None] + tiny
        u = self._fisher_product(clean, tangent, decoders).unflatten(2, (n, h * w))
        # Where a decoder is saturated, u² underflows: scale by the largest entry first.
        largest = torch.linalg.vector_norm(u, float('inf'), (1, 3), keepdim=True).clamp(min=tiny)
        u = u / largest
        length = (u * torch.bmm(gram, u.flatten(2)).view_as(u)).sum((1, 3), keepdim=True)
        norm = length.clamp(min=0).sqrt()
        if self.norm_floor:
            # at ξ, the batch mean's gradient with respect to the unit direction is ξ²/N times this
            norm = norm + self.norm_floor * n / self.xi**2 / largest
        # where Wᵀu = 0, the norm is nothing but rounding errors
        u = self.epsilon * (u / norm.clamp(min=least))
        return context.at_positions(u.transpose(1, 2).unflatten(-1, (h, w)))

    def _fisher_product(self, clean: Tensor, tangent: Tensor, decoders: DecoderGroup) -> Tensor:
        """Computes `FisherProduct` on `(k, B, P)`, chunk by chunk."""
        chain, chunking = decoders.chain, decoders.chunking
        kernel = native_chain(clean, chain, chunking)
        if kernel is not None:
            return kernel.fisher_product(clean, tangent, chain)
        _, size = chunking.shape(clean, chain.values_per_position)
        step = chunking.prepare(FisherProduct(chain.final_activation), clean.device)
        pairs = zip(split_positions(clean, size), split_positions(tangent, size))
        parameters = tuple(chain.weights), tuple(chain.biases)
        parts = [step(x, v, *parameters) for x, v in pairs]
        return join(parts, -1)[..., : clean.shape[-1]]


def _projected_noise(weight: Tensor, like: Tensor) -> Tensor:
    """Draws W r `(k, N, B, S)` for W `(k, B, D)` and Gaussian r: its covariance is W Wᵀ."""
    # Double precision and a small multiple of the identity keep the factorisation defined where
    # the rows of W are zero or linearly dependent, as they are where B > D.
    wide = weight.double()
    gram = wide @ wide.mT
    diagonal = gram.diagonal(dim1=-2, dim2=-1)
    diagonal += 1e-10 * diagonal.mean(-1, keepdim=True) + 1e-30
    factor = torch.linalg.cholesky_ex(gram).L.to(like.dtype)
    noise = torch.randn_like(like).transpose(1, 2)  # (k, B, N, S)
    return torch.bmm(factor, noise.flatten(2)).view(noise.shape).transpose(1, 2)
