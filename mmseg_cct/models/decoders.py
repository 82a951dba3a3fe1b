"""K decoders of one shape as stacked parameters, and the pure functions that run them.

A decoder is a bias-free 1×1 convolution `D → C` (its projection) and a chain of sub-pixel
convolutions. Activations are class-first, `(K, C, P)`, and in sub-pixel layout (see `subpixel.py`):
a level is one batched matrix product for all decoders, and its PixelShuffle is a view.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from .chunking import Chunking


class Chain(NamedTuple):
    """The sub-pixel convolutions of K decoders.

    Attributes:
        weights: One `(K, 4C, C)` per level.
        biases: One `(K, 4C, 1)` per level.
        final_activation: Whether the last level ends in a ReLU.
    """

    weights: Sequence[Tensor]
    biases: Sequence[Tensor]
    final_activation: bool

    def select(self, decoders: slice) -> 'Chain':
        """The chain of some of the decoders."""
        return Chain([w[decoders] for w in self.weights], [b[decoders] for b in self.biases],
                     self.final_activation)


def decode(projected: Tensor, chain: Chain) -> Tensor:
    """Runs the sub-pixel convolutions.

    Args:
        projected: `(K, C, P)`, projected features.
        chain: The convolutions.

    Returns:
        seg_logits `(K, C, R, s²/R · P)`, R = 4 sub-pixels of the last level (1 without levels).
    """
    num_decoders, num_classes, _ = projected.shape
    x, subpixels = projected, 1
    for level, (weight, bias) in enumerate(zip(chain.weights, chain.biases)):
        x = torch.bmm(weight.to(x.dtype), x.reshape(num_decoders, num_classes, -1))
        x = x + bias.to(x.dtype)
        if chain.final_activation or level < len(chain.weights) - 1:
            x = x.relu()
        subpixels = 4
    return x.view(num_decoders, num_classes, subpixels, -1)


@dataclass
class DecoderGroup:
    """The decoders that share one perturbation.

    Attributes:
        projection: `(k, C, D)`.
        chain: Their sub-pixel convolutions.
        stride: s.
        chunking: Chunk size and compilation.
    """

    projection: Tensor
    chain: Chain
    stride: int
    chunking: Chunking

    def as_float(self) -> 'DecoderGroup':
        """The same decoders in at least float32."""
        if self.projection.dtype not in (torch.float16, torch.bfloat16):
            return self
        chain = Chain([w.float() for w in self.chain.weights],
                      [b.float() for b in self.chain.biases], self.chain.final_activation)
        return replace(self, projection=self.projection.float(), chain=chain)

    def project(self, features: Tensor) -> Tensor:
        """Applies the projections to features that all decoders share.

        Args:
            features: `(N, D, S)`.

        Returns:
            `(k, N, C, S)`.
        """
        k, c, _ = self.projection.shape
        weight = self.projection.flatten(0, 1).expand(len(features), -1, -1)
        return torch.bmm(weight, features).unflatten(1, (k, c)).transpose(0, 1)
