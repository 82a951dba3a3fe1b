"""Pyramid pooling neck, the last stage of the paper's encoder."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from mmcv.cnn import ConvModule
from mmengine.model import BaseModule
from mmseg.models.decode_heads.psp_head import PPM
from mmseg.registry import MODELS
from torch import Tensor

from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.stacked_decoders import is_compiling


@MODELS.register_module()
class PSPNeck(BaseModule):
    """Pools the backbone's features at several scales and fuses them into z.

    Shapes: `N` images, `B` backbone channels, `D` channels of z, `h×w` the feature map.

    Args:
        in_channels: B, the channels of the backbone's feature map; 2048 in the paper.
        channels: D, also the channels of each pooled branch; the paper's B/4.
        pool_scales: Sides of the pooled grids.
        in_index: Which of the backbone's outputs to take.
        norm_cfg: Normalisation layer; None is BN.
        align_corners: As in `F.interpolate`, which resizes the pooled grids.
        init_cfg: Initialisation of the weights; by default the layers' own.

    Raises:
        UserError: If the backbone gives a tensor instead of a tuple.

    Examples:
        >>> neck = PSPNeck(in_channels=64, channels=16)
        >>> (z,) = neck((torch.rand(2, 32, 24, 24), torch.rand(2, 64, 12, 12)))
        >>> tuple(z.shape)
        (2, 16, 12, 12)
    """

    def __init__(
        self,
        in_channels: int,
        channels: int = 512,
        pool_scales: Sequence[int] = (1, 2, 3, 6),
        in_index: int = -1,
        norm_cfg: dict | None = None,
        align_corners: bool = False,
        init_cfg: dict | list | None = None,
    ) -> None:
        super().__init__(init_cfg)
        norm_cfg = norm_cfg or dict(type='BN', requires_grad=True)
        self.in_index = in_index
        self.pool_scales = tuple(pool_scales)
        layers: dict[str, Any] = dict(norm_cfg=norm_cfg, act_cfg=dict(type='ReLU'), conv_cfg=None)
        layers['align_corners'] = align_corners
        self.pyramid = _Pyramid(self.pool_scales, in_channels, channels, **layers)
        joined = in_channels + len(self.pool_scales) * channels
        self.bottleneck = ConvModule(joined, channels, 3, padding=1, norm_cfg=norm_cfg)

    def forward(self, features: Sequence[Tensor]) -> tuple[Tensor]:
        """Maps output `in_index` of the backbone, `(N, B, h, w)`, to one z `(N, D, h, w)`."""
        if isinstance(features, Tensor):
            several = 'MobileNetV2 gives one if out_indices names two stages or more'
            expected = f'a tuple of feature maps ({several})'
            raise UserError('model.backbone', 'gives one tensor', expected)
        x = features[self.in_index]
        return (self.bottleneck(torch.cat([x, *self.pyramid(x)], dim=1)),)


class _Pyramid(PPM):
    """MMSeg's pyramid, with another bilinear interpolation on a GPU.

    The backward pass of `F.interpolate` adds with atomics there, and thousands of pixels share a
    value of a pooled grid: it took 34 of the 151 ms of a step with ResNet-50 on an H200.
    """

    def forward(self, x: Tensor) -> list[Tensor]:
        if not x.is_cuda:
            return super().forward(x)
        return [_interpolate(pool(x), x.shape[2:], self.align_corners) for pool in self]


def _interpolate(x: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """Bilinear interpolation of `(N, D, h, w)` as a matrix product."""
    old_size, new_size = tuple(map(int, x.shape[2:])), tuple(map(int, size))
    # what an export or a compilation makes is none of a training's tensors
    weights_of = _bilinear_weights.__wrapped__ if is_compiling() else _bilinear_weights
    weights = weights_of(old_size, new_size, align_corners, x.dtype, x.device)
    return (x.flatten(2) @ weights).unflatten(2, new_size)


@lru_cache(maxsize=32)  # a pyramid of four grids for a few sizes and types
@torch.inference_mode(False)  # a tensor of that mode has no place in a later training
def _bilinear_weights(
    old_size: tuple[int, ...],
    new_size: tuple[int, ...],
    align_corners: bool,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """Weights `(h·w, H·W)` of each pixel of the old size, `(h, w)`, in each of the new one."""
    cells = torch.eye(old_size[0] * old_size[1], device=device).view(-1, 1, *old_size)
    resized = F.interpolate(cells, new_size, mode='bilinear', align_corners=align_corners)
    return resized.flatten(1).to(dtype)
