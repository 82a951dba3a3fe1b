"""Adversarial alignment of features between domains, supplement E of the paper."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from mmengine.model import BaseModule
from mmseg.registry import MODELS
from torch import Tensor, nn

from mmseg_cct.utils.ranges import number, ranges


class _GradientReversal(torch.autograd.Function):
    """Identity with -λ times the gradient (Ganin & Lempitsky, 2015)."""

    @staticmethod
    def forward(ctx, features: Tensor, scale: float) -> Tensor:
        ctx.scale = scale
        return features.view_as(features)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient * -ctx.scale, None


@MODELS.register_module()
class DomainDiscriminator(BaseModule):
    """Classifies the domain of an image at each position of z.

    3×3 convolutions with LeakyReLU, then a 1×1 convolution, as in Hung et al. (2018), all at the
    resolution of z. L_adv is the cross-entropy with the true domain, mean over images and
    positions. The discriminator minimises it; through the gradient reversal layer the encoder
    maximises it with weight λ.

    Args:
        in_channels: D, the channels of z.
        num_domains: Number of domains; set by `MultiDomainCCTSegmentor`.
        channels: Output channels of the 3×3 convolutions.
        scale: λ_adv of Eq. 8; the reversal layer applies it, so it only weighs the encoder's
            gradient.
        in_index: Which of the neck's outputs is z.
        init_cfg: Initialisation of the weights; by default PyTorch's.
    """

    @ranges(scale=number(0))  # the reversal layer brings the sign
    def __init__(
        self,
        in_channels: int,
        num_domains: int = 2,
        channels: Sequence[int] = (64, 128, 256, 512),
        scale: float = 2e-2,
        in_index: int = -1,
        init_cfg: dict | list | None = None,
    ) -> None:
        super().__init__(init_cfg)
        self.scale = scale
        self.in_index = in_index
        layers: list[nn.Module] = []
        for layer_in, layer_out in zip((in_channels, *channels), channels):
            convolution = nn.Conv2d(layer_in, layer_out, kernel_size=3, padding=1)
            layers += [convolution, nn.LeakyReLU(0.2, inplace=True)]
        self.layers = nn.Sequential(*layers, nn.Conv2d(channels[-1], num_domains, kernel_size=1))

    def forward(self, z: Tensor) -> Tensor:
        """Maps z `(N, D, h, w)` to logits of the domains `(N, num_domains, h, w)`."""
        return self.layers(z)

    def loss(self, features: Sequence[Sequence[Tensor]], domain: int) -> dict[str, Tensor]:
        """Computes L_adv, Eq. 7, on images of one domain, given by its index.

        `features` are the neck's outputs for each branch; z is `(N, D, h, w)`. `loss` is L_adv and
        `accuracy`, for the log, is in percent; both are means over the positions of all images.
        """
        # every position of every image is a sample of its own
        maps = [self(_GradientReversal.apply(z[self.in_index], self.scale)) for z in features]
        scores = torch.cat([logits.movedim(1, -1).flatten(0, 2) for logits in maps])
        labels = scores.new_full((len(scores),), domain, dtype=torch.long)
        # the loss in float32, as 16 bits round the logarithm
        accuracy = 100 * (scores.argmax(1) == labels).float().mean()
        return dict(loss=F.cross_entropy(scores.float(), labels), accuracy=accuracy)
