"""Class activation maps of a multi-label classifier (section 3.3).

Shapes: `N` images of one size, `D` channels of the backbone's last output, `C` classes of the
classifier, `C_i` classes in image i, `h×w` the feature map, `H×W` the image.
"""

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.runner.checkpoint import load_state_dict
from torch import Tensor, nn

from mmseg_cct.engine.checkpoints import read_checkpoint
from mmseg_cct.engine.weights import weights
from mmseg_cct.errors import UserError

EPSILON = 1e-5


def mmpretrain_registry() -> ModuleType:
    """Imports the registry of mmpretrain, an optional dependency."""
    try:
        return importlib.import_module('mmpretrain.registry')
    except ImportError:
        missing = 'mmpretrain is not installed, which the classifier needs; run'
        raise UserError(missing, 'pip install onedl-mmpretrain torchvision') from None


def load_classifier(config: Config, checkpoint: str, device: str) -> Any:
    """Builds an `ImageClassifier` with trained weights, in evaluation mode.

    Its `dataset_meta` is that of its training set, None if the checkpoint does not tell.

    Raises:
        UserError: If its head is not global average pooling and a linear layer.
        RuntimeError: If the weights do not fit.
    """
    registry = mmpretrain_registry()
    init_default_scope(config.get('default_scope') or 'mmpretrain')
    model_config = config.model.copy()
    # The checkpoint replaces the weights of ImageNet, which need not be there
    model_config.get('backbone', {}).pop('init_cfg', None)
    model = registry.MODELS.build(model_config)
    if not isinstance(getattr(getattr(model, 'head', None), 'fc', None), nn.Linear):
        expected = 'an ImageClassifier with GlobalAveragePooling and MultiLabelLinearClsHead'
        raise UserError(config.filename, 'model.head has no linear layer `fc`', expected)
    content = read_checkpoint(checkpoint)
    load_state_dict(model, weights(content), strict=True)
    model.dataset_meta = (content.get('meta') or {}).get('dataset_meta')
    return model.to(device).eval()


@torch.no_grad()
def class_activation_maps(
    model: Any,
    images: Tensor,
    class_ids: Sequence[Sequence[int]],
    sizes: Sequence[tuple[int, int]],
    scales: Sequence[float] = (1.0,),
) -> list[Tensor]:
    """Computes class activation maps of the classes in each image, over scales and flips.

    A map is ReLU(wᵀ f), with f a feature and w the linear layer's row of the class. Maps of all
    scales and of their mirror images are summed at the size of the image and divided by their
    maximum.

    `images` are `(N, 3, h_in, w_in)`, as `model.data_preprocessor` returns them; `class_ids` are
    those of the classes in each, `sizes` H, W of its maps. Returns N tensors `(C_i, H, W)` in
    [0, 1].
    """
    # Mean pooling and a linear layer commute: as a 1×1 convolution, the layer scores each place.
    weight = model.head.fc.weight[:, :, None, None]
    totals = [images.new_zeros(len(ids), *size) for ids, size in zip(class_ids, sizes)]
    for scale in scales:
        scaled = resize(images, [max(round(side * scale), 1) for side in images.shape[-2:]])
        features = model.extract_feat(torch.cat([scaled, scaled.flip(-1)]), stage='backbone')[-1]
        # Without the bias, which belongs to the image: it would lift all of a map.
        plain, mirrored = F.conv2d(features, weight).relu().chunk(2)
        for total, maps, ids in zip(totals, plain + mirrored.flip(-1), class_ids):
            if len(ids):
                total += resize(maps[list(ids)].unsqueeze(0), total.shape[-2:]).squeeze(0)
    return [normalize(total) for total in totals]


def resize(images: Tensor, size: Sequence[int]) -> Tensor:
    """Resizes `(N, C, H, W)` bilinearly to a height and width."""
    if tuple(images.shape[-2:]) == tuple(size):
        return images
    return F.interpolate(images, tuple(size), mode='bilinear', align_corners=False)


def normalize(maps: Tensor) -> Tensor:
    """Scales maps `(C, H, W)` ≥ 0 to a maximum of 1 each; a map of zeros stays as it is."""
    return maps / maps.amax((-2, -1), keepdim=True).clamp_min(EPSILON)
