"""Pure functions that run K decoders of one shape, given as stacked parameters.

A decoder is a bias-free 1×1 convolution `D → B`, its projection, and a chain of sub-pixel
convolutions `B → B`, the last one `B → C`; in the paper B = C. Activations are channel-first,
`(K, B, P)`, and in sub-pixel layout (see `subpixel.py`): a level is one batched matrix product for
all decoders, and its PixelShuffle is a view.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mmseg_cct.stack import compilation_test

from .chunking import Chunking

# float16 ends at 65504: it holds a sum of FLOAT16_SUMMANDS products of a gradient up to
# FLOAT16_GRADIENT and an activation up to 128.
FLOAT16_SUMMANDS = 2**13
FLOAT16_GRADIENT = 2**-4
is_compiling = compilation_test()


class Chain(NamedTuple):
    """Sub-pixel convolutions of K decoders."""

    weights: Sequence[Tensor]  # one (K, 4B, B) per level, (K, 4C, B) for the last
    biases: Sequence[Tensor]  # one (K, 4B, 1) per level, (K, 4C, 1) for the last
    final_activation: bool  # whether the last level ends in a ReLU

    def activates(self, level: int) -> bool:
        """Whether a level ends in a ReLU."""
        return self.final_activation or level < len(self.weights) - 1

    def where_active(self, level: int, change: Tensor, outputs: Sequence[Tensor]) -> Tensor:
        """Passes a change or gradient of a level's output on where its ReLU, if any, passed it.

        `outputs` are those of `decode_levels`.
        """
        if not self.activates(level):
            return change
        return torch.ops.aten.threshold_backward(change, outputs[level + 1], 0)

    @property
    def values_per_position(self) -> int:
        """Size of the largest activation of a decoder at one feature position, at least 1."""
        outputs = (weight.shape[1] * 4**level for level, weight in enumerate(self.weights))
        return max(outputs, default=1)

    def map(self, function: Callable[[Tensor], Tensor]) -> 'Chain':
        """Applies a function to each weight and bias."""
        weights = [function(weight) for weight in self.weights]
        biases = [function(bias) for bias in self.biases]
        return Chain(weights, biases, self.final_activation)

    def select(self, decoders: slice) -> 'Chain':
        """Selects some of the decoders."""
        return self.map(lambda parameter: parameter[decoders])


def decode(projected: Tensor, chain: Chain) -> Tensor:
    """Maps projected features `(K, B, P)` to seg_logits `(K, C, R, s²/R · P)`.

    R = 4 sub-pixels of the last level, 1 without levels.
    """
    return as_seg_logits(decode_levels(projected, chain)[-1], chain)


def decode_levels(projected: Tensor, chain: Chain) -> list[Tensor]:
    """Runs the sub-pixel convolutions and keeps each level's output for `decode_backward`.

    Returns the input `(K, B, P)`, then the output `(K, 4B, 4ˡ · P)` of each level l = 0 … L-1,
    with 4C channels for the last.
    """
    outputs = [projected]
    for level, (weight, bias) in enumerate(zip(chain.weights, chain.biases)):
        x = outputs[-1].reshape(len(weight), weight.shape[-1], -1)
        x = torch.bmm(weight.to(x.dtype), x) + bias.to(x.dtype)
        outputs.append(x.relu() if chain.activates(level) else x)
    return outputs


def decode_backward(
    outputs: Sequence[Tensor], chain: Chain, grad: Tensor
) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Gradients of `decode_levels` with respect to its input, the weights and the biases.

    `grad` is that of the last output, with as many elements; in float16 up to `FLOAT16_GRADIENT`,
    as the sums over columns come before any loss scaler.

    Written by hand because of the weights' gradients: their products, computed as `B × 4B`, take a
    third less time on a CPU than the `4B × B` of autograd.
    """
    weights: list[Tensor] = []
    biases: list[Tensor] = []
    for level in reversed(range(len(chain.weights))):
        weight = chain.weights[level]
        grad = chain.where_active(level, grad.reshape(outputs[level + 1].shape), outputs)
        x = outputs[level].reshape(len(weight), weight.shape[-1], -1)
        # gradients of this level, last first, then that of its input
        biases.insert(0, grad.sum(-1, keepdim=True, dtype=weight.dtype))
        # in parts, each summed in float32: the sum over all columns may overflow float16
        size = FLOAT16_SUMMANDS if x.dtype == torch.float16 else x.shape[-1]
        parts = zip(x.split(size, -1), grad.split(size, -1))
        products = [
            (torch.bmm(b, a.mT) if x.is_cuda else torch.bmm(a, b.mT).mT).to(weight.dtype)
            for a, b in parts
        ]
        weights.insert(0, products[0] if len(products) == 1 else torch.stack(products).sum(0))
        grad = torch.bmm(weight.to(grad.dtype).mT, grad)
    return grad.reshape(outputs[0].shape), weights, biases


def as_seg_logits(output: Tensor, chain: Chain) -> Tensor:
    """Splits the last level's output `(K, 4C, s²/4 · P)` by class and sub-pixel, as `decode`.

    Without levels it is the projected features `(K, C, P)`.
    """
    return output.unflatten(1, (-1, 4)) if chain.weights else output.unsqueeze(2)


def softmax(seg_logits: Tensor) -> Tensor:
    """Probabilities over the classes, of logits `(K, C, ...)`.

    Under `torch.compile` it is written out, with a product instead of the division: the kernels
    then compute each exponential once, forward and backward, and are a third faster. Uncompiled,
    each of these steps would pass over the predictions separately.
    """
    if not is_compiling():
        return seg_logits.softmax(1)
    exponentials = (seg_logits - seg_logits.detach().amax(1, keepdim=True)).exp()
    return exponentials * exponentials.sum(1, keepdim=True).reciprocal()


@dataclass
class DecoderGroup:
    """k decoders that share one perturbation."""

    projection: Tensor  # (k, B, D)
    chain: Chain  # their sub-pixel convolutions
    chunking: Chunking
    projected: tuple[Tensor, Tensor] | None = None  # features, and what `project` makes of them

    def as_float(self) -> 'DecoderGroup':
        """Casts 16-bit parameters to float32, and forgets what was projected in 16 bits."""
        group, half_types = self, (torch.float16, torch.bfloat16)
        if self.projected is not None and self.projected[1].dtype in half_types:
            group = replace(group, projected=None)
        if self.projection.dtype in half_types:
            projection, chain = self.projection.float(), self.chain.map(Tensor.float)
            group = replace(group, projection=projection, chain=chain)
        return group

    def project(self, features: Tensor) -> Tensor:
        """Applies the k projections to the same features: `(N, D, S)` to `(k, N, B, S)`."""
        if self.projected is not None and features is self.projected[0]:
            return self.projected[1]
        k, b, _ = self.projection.shape
        weight = self.projection.flatten(0, 1).expand(len(features), -1, -1)
        return torch.bmm(weight, features).unflatten(1, (k, b)).transpose(0, 1)


def project_at_once(groups: Sequence[DecoderGroup], features: Tensor) -> None:
    """Projects the same features by all groups in one product, which each then returns."""
    if groups:
        weights = [group.projection for group in groups]
        projected = replace(groups[0], projection=torch.cat(weights)).project(features)
        for group, part in zip(groups, projected.split([len(weight) for weight in weights])):
            group.projected = features, part


class ScatterInto(torch.autograd.Function):
    """Writes the decoders of one perturbation into the tensor of all decoders.

    Concatenation would hold every part twice; a plain assignment would copy the gradient of all
    decoders for each part.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, part: Tensor, chosen: slice) -> Tensor:
        """Writes `part` to `rows[chosen]`, in the type of `rows`."""
        ctx.chosen, ctx.dtype = chosen, part.dtype
        ctx.mark_dirty(rows)
        rows[chosen] = part
        return rows

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        """Passes on the gradient of all rows; that of the part is a view of it."""
        return grad, grad[ctx.chosen].to(ctx.dtype), None
