"""A backbone for images with any number of channels."""

from typing import Any

import torch
from mmengine.model import BaseModule
from mmseg.registry import MODELS
from torch import Tensor, nn

from mmseg_cct.errors import UserError


@MODELS.register_module()
class MultiChannelBackbone(BaseModule):
    """A backbone whose first convolution takes images with any number of channels.

    The weights for channel i are the pretrained ones of colour i mod 3, times 3/C, so the first
    three channels keep their filters and the sum over all channels keeps its size. A single channel
    gets the sum of the three, so it is seen as a grey image. timm does the same. If a config's
    `image_loader` does not load three channels, it wraps the model's backbone in this class.

    Args:
        in_channels: C, the number of channels.
        backbone: Config of a backbone for images with three channels.

    Raises:
        UserError: If the first convolution of the backbone does not take three channels.
    """

    def __init__(self, in_channels: int, backbone: dict[str, Any]) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.backbone = MODELS.build(backbone)
        convolutions = (m for m in self.backbone.modules() if isinstance(m, nn.Conv2d))
        first = next(convolutions, None)
        if first is None or first.in_channels != 3:
            key = f'model.backbone.backbone.type={backbone["type"]!r}'
            raise UserError(key, 'does not begin with a convolution of 3 channels', 'one that does')
        self.first = (first,)  # a tuple registers no second name for its weight
        self.rgb_weight = first.weight.data
        first.in_channels = in_channels
        first.weight.data = weight_of_channels(self.rgb_weight, in_channels)

    def init_weights(self) -> None:
        """Initialises the backbone for three channels, then derives the weights for C channels."""
        (first,) = self.first
        # only the data is replaced: mmengine allows no new parameter here
        first.weight.data = self.rgb_weight.to(first.weight)
        super().init_weights()
        first.weight.data = weight_of_channels(first.weight.data, self.in_channels)

    def forward(self, images: Tensor) -> Any:
        """Maps images `(N, C, H, W)` to the backbone's outputs."""
        return self.backbone(images)


def weight_of_channels(weight: Tensor, channels: int) -> Tensor:
    """Makes a weight `(D, C, k, k)` for C channels from one for three colours `(D, 3, k, k)`."""
    if channels == 1:
        return weight.sum(1, keepdim=True)
    return weight[:, torch.arange(channels) % 3] * (3 / channels)
