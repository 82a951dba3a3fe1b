"""Measures which features of a model the auxiliary decoders can take."""

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from mmengine.model import revert_sync_batchnorm
from mmseg.registry import MODELS
from torch import Tensor

from mmseg_cct.config.walk import forget_initial_weights
from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import library_errors_as_one_line

_COARSEST = 16  # the coarsest stride of a stage that is offered as z


class Z(NamedTuple):
    """Features that the auxiliary decoders can take."""

    selector: dict[str, Any]  # the bank's argument that names them
    title: str
    channels: int  # D
    stride: int  # pixels that a position covers


def choose_z(model: Mapping[str, Any]) -> tuple[Z, int]:
    """Chooses the features that the auxiliary decoders take, and counts a model's classes.

    They are what the main head has fused or, if that is coarser than stride 16, the deepest stage
    that is not.

    Raises:
        UserError: The model does not run, gives no map of logits with a channel for each class, or
            has no features that are a map whose stride is a power of two.
    """
    settings: Any = copy.deepcopy(model)
    forget_initial_weights(settings)
    size = settings.backbone.get('img_size') or 512  # transformers may accept no other size
    side = size[0] if isinstance(size, (list, tuple)) else size
    fails = f'does not run on an image of {side}×{side}'
    settings.update(type='CCTSegmentor', auxiliary_head=None)  # it knows any main decoder
    fused: list[Tensor] = []
    with library_errors_as_one_line('model', fails, 'a model that does'), torch.no_grad():
        built = revert_sync_batchnorm(MODELS.build(settings)).eval()
        if layer := built.fused_layer:
            classifier = built.decode_head.get_submodule(layer)
            classifier.register_forward_pre_hook(lambda _, args: fused.append(args[0]))
        try:  # tensors without values tell shapes in no time, however large the image is
            features, logits = _outputs(copy.deepcopy(built).to('meta'), side, 'meta')
        except (NotImplementedError, RuntimeError):  # not those that values decide on
            features, logits = _outputs(built, side, 'cpu')
    if not isinstance(logits, Tensor) or logits.ndim != 4 or logits.shape[1] < 2:
        problem = f'{type(built.decode_head).__name__} gives no map with a channel for each class'
        raise UserError('model.decode_head', problem, 'a head that does')

    encoder = type(built.neck if built.with_neck else built.backbone).__name__
    candidates = []
    for index, stage in enumerate([features] if isinstance(features, Tensor) else features):
        z = Z(dict(in_index=index), f'output {index} of {encoder}', *_size(stage, side))
        if 0 < z.stride <= _COARSEST:
            candidates.append(z)
    for features in fused[-1:]:
        title = f'what {type(built.decode_head).__name__} has fused (the input of {layer})'
        z = Z(dict(in_layer=layer), title, *_size(features, side))
        # coarse fused features are the last choice: a position would stand for 1024 pixels
        if z.stride:
            candidates.insert(len(candidates) if z.stride <= _COARSEST else 0, z)
    if not candidates:
        problem = f'neither what is fused nor a stage at stride 1 to {_COARSEST} is a map'
        raise UserError('model', problem, 'features that the auxiliary decoders can take')
    return candidates[-1], logits.shape[1]


def _outputs(model: Any, side: int, device: str) -> tuple[Any, Any]:
    features = model.extract_feat(torch.zeros(1, 3, side, side, device=device))
    return features, model.main_logits(features)


def _size(features: Any, side: int) -> tuple[int, int]:
    """Returns channels and stride; stride 0 means no map whose stride is a power of two."""
    if not isinstance(features, Tensor) or features.ndim != 4:
        return 0, 0
    height, width = features.shape[-2:]
    stride = side // height
    fits = height == width and stride * height == side and not stride & (stride - 1)
    return features.shape[1], stride if fits else 0
