"""Plain vision transformers of timm, such as DINOv2 and DINOv3, at a power-of-two stride."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.model import BaseModule
from mmseg.registry import MODELS
from torch import Tensor

from mmseg_cct.errors import UserError


@MODELS.register_module()
class TimmViT(BaseModule):
    """A plain vision transformer of timm that returns chosen layers as maps at one stride.

    The pretrained patch size p stays: the image is resized by p / s before it is cut into patches,
    so the grid is exactly H/s × W/s for p = 14 too. Only the position embedding is resampled, which
    timm interpolates to any grid.

    Shapes: `N` images, `D` channels of the transformer, `s` the stride.

    Args:
        model_name: timm's name of the model.
        out_indices: Layers, counted from 0, whose normalised outputs are returned.
        stride: s, the stride of the maps; H and W must be multiples of it.
        frozen: Whether the transformer stays as it was pretrained: without gradients, dropout or
            weight updates.
        pretrained: Whether timm loads its pretrained weights; without effect if there is an
            `init_cfg`.
        pretrained_cfg_overlay: Changes to timm's description of the weights: `file` is a file to
            load them from, with the parameter names of timm or of the authors.
        init_cfg: Initialisation by mmengine instead of timm.
        **kwargs: Further arguments of the model, such as `drop_path_rate`.

    Raises:
        UserError: If the side of an image is no multiple of s.
    """

    def __init__(
        self,
        model_name: str,
        out_indices: Sequence[int] = (2, 5, 8, 11),
        stride: int = 16,
        frozen: bool = False,
        pretrained: bool = True,
        pretrained_cfg_overlay: dict[str, Any] | None = None,
        init_cfg: dict | list | None = None,
        **kwargs: Any,
    ) -> None:
        import timm  # an optional requirement

        super().__init__(init_cfg)
        pretrained = pretrained and init_cfg is None
        self.stride = stride
        self.frozen = frozen
        overlay = dict(pretrained_cfg_overlay or {})
        if 'file' in overlay:
            overlay['file'] = str(Path(overlay['file']).expanduser())
        options: Any = dict(num_classes=0, dynamic_img_size=True, pretrained_cfg_overlay=overlay)
        self.timm_model = timm.create_model(model_name, pretrained=pretrained, **options, **kwargs)
        self.out_indices = list(out_indices)
        # what comes after the last of these layers would get no gradient
        layers = self.out_indices
        self.timm_model.prune_intermediate_layers(layers, prune_norm=False, prune_head=True)
        (self.patch_size,) = set(self.timm_model.patch_embed.patch_size)
        if pretrained:
            self._is_init = True  # timm has loaded them: mmengine must not initialise them
        if init_cfg is not None:
            self.timm_model.is_init = True  # else timm redraws them after init_cfg
        if frozen:
            self.timm_model.requires_grad_(False)
            self.timm_model.eval()

    def train(self, mode: bool = True) -> 'TimmViT':
        """Sets the mode; a frozen transformer stays in eval mode."""
        super().train(mode)
        if self.frozen:
            self.timm_model.eval()
        return self

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """Maps images `(N, 3, H, W)` to one `(N, D, H/s, W/s)` per chosen layer."""
        height, width = images.shape[-2:]
        if height % self.stride or width % self.stride:
            remedy = f'a size that is in training, and test_cfg=dict(size_divisor={self.stride})'
            expected = f'multiples of {self.stride}, the stride of model.backbone: {remedy}'
            problem = f'gives images of {height}×{width}'
            raise UserError('model.data_preprocessor', problem, expected)
        if self.patch_size != self.stride:
            size = [side // self.stride * self.patch_size for side in (height, width)]
            smooth = dict(mode='bilinear', align_corners=False, antialias=True)
            images = F.interpolate(images, size, **smooth)
        # DINOv3's grid of positions is made anew in each pass, by default on the host, which would
        # wait for its copy to the GPU
        with images.device, torch.no_grad() if self.frozen else nullcontext():
            maps = self.timm_model.forward_intermediates(
                images, indices=self.out_indices, norm=True, intermediates_only=True
            )
        return tuple(maps)
