"""Neck of a linear head on several layers of a transformer."""

from collections.abc import Sequence

import torch
from mmcv.cnn import build_norm_layer
from mmengine.model import BaseModule
from mmseg.registry import MODELS
from torch import Tensor, nn


@MODELS.register_module()
class ConcatNeck(BaseModule):
    """Concatenates maps of one size, normalises them and projects them to z.

    With a 1×1 convolution as main decoder this is DINO's linear head (concatenation, BatchNorm, 1×1
    convolution) with its convolution factorised into two: L_u trains the first, which makes z, and
    never the second.

    Shapes: `N` images, `D` channels of z, `h×w` the maps.

    Args:
        in_channels: Channels of each map.
        channels: D, the channels of z.
        norm_cfg: Normalisation layer; None is BN.
        init_cfg: Initialisation of the weights; by default the layers' own.
    """

    def __init__(
        self,
        in_channels: Sequence[int],
        channels: int = 512,
        norm_cfg: dict | None = None,
        init_cfg: dict | list | None = None,
    ) -> None:
        super().__init__(init_cfg)
        total = sum(in_channels)
        norm_cfg = norm_cfg or dict(type='BN', requires_grad=True)
        # layers differ in scale: their norm comes before they are mixed
        self.norm = build_norm_layer(norm_cfg, total)[1]
        self.project = nn.Conv2d(total, channels, 1)

    def forward(self, features: Sequence[Tensor]) -> tuple[Tensor]:
        """Maps the backbone's outputs `(N, ·, h, w)` to one z `(N, D, h, w)`."""
        return (self.project(self.norm(torch.cat(tuple(features), dim=1))),)
