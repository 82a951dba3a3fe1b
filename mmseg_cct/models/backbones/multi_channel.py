"""A backbone for images of other than three channels."""

from typing import Any

import torch
from mmengine.model import BaseModule
from mmseg.registry import MODELS
from torch import Tensor, nn

from mmseg_cct.checks.ranges import at_least, ranges
from mmseg_cct.errors import UserError


@MODELS.register_module()
class MultiChannelBackbone(BaseModule):
    """A backbone whose first convolution takes images of any number of channels.

    Its weights for channel i are those that were pretrained for colour i mod 3, times 3/C: the
    first three of C channels keep their filters, and the sum stays of the same size. timm adapts
    its networks so. `image_loader` of a config puts it around the model's backbone.

    Args:
        in_channels: C, the number of channels.
        backbone: Config of the backbone, of images of three channels.

    Raises:
        UserError: If no convolution of the backbone takes three channels.
    """

    @ranges(in_channels=at_least(1))
    def __init__(self, in_channels: int, backbone: dict[str, Any]) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.backbone = MODELS.build(backbone)
        convolutions = (m for m in self.backbone.modules() if isinstance(m, nn.Conv2d))
        first = next(convolutions, None)
        if first is None or first.in_channels != 3:
            raise UserError(
                f'model.backbone.backbone.type={backbone["type"]!r}: begins with no convolution of '
                'three channels; expected a backbone that does'
            )
        self.first = (first,)  # no second name for its weight
        self.of_colours = first.weight.data
        first.in_channels = in_channels
        first.weight.data = weight_of_channels(self.of_colours, in_channels)

    def init_weights(self) -> None:
        """Initialises the backbone for three channels, and makes the others' weights of theirs."""
        (first,) = self.first
        # the data alone: mmengine allows no new parameter here
        first.weight.data = self.of_colours.to(first.weight)
        super().init_weights()
        first.weight.data = weight_of_channels(first.weight.data, self.in_channels)

    def forward(self, images: Tensor) -> Any:
        """Maps images `(N, C, H, W)` to what the backbone gives."""
        return self.backbone(images)


def weight_of_channels(weight: Tensor, channels: int) -> Tensor:
    """Makes a weight `(D, C, k, k)` for C channels of one for three colours `(D, 3, k, k)`."""
    return weight[:, torch.arange(channels) % 3] * (3 / channels)
