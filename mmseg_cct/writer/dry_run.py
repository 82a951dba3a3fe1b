"""Runs a model on a small image, to see which features the auxiliary decoders can take."""

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from mmengine.model import revert_sync_batchnorm
from mmseg.registry import MODELS
from torch import Tensor

from mmseg_cct.config.walk import forget_initial_weights
from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import error_line

_SIDES = (128, 512)  # pixels of the image: some models need a larger one
_COARSEST = 16  # the coarsest stride of a stage that is offered as z


class Z(NamedTuple):
    """Features that the auxiliary decoders can take."""

    place: dict[str, Any]  # the bank's argument that names them
    title: str
    channels: int  # D
    stride: int  # pixels that a position covers


class DryRun(NamedTuple):
    """Outputs of a model for a small image."""

    stages: tuple[Z, ...]  # of the neck, or of the backbone if there is none
    fused: Z | None  # what the main head classifies, if it has a `conv_seg`
    num_classes: int


def try_model(model: Mapping[str, Any]) -> DryRun:
    """Runs a model of MMSegmentation on a small image, without its weights.

    Raises:
        UserError: The model does not run, returns no map of logits, or has other features in
            training.
    """
    settings: Any = copy.deepcopy(model)
    forget_initial_weights(settings)
    own = settings.backbone.get('img_size')  # of transformers that accept no other
    own = own[0] if isinstance(own, (list, tuple)) else own
    sides = dict.fromkeys([_SIDES[0], *([own] if own else []), *_SIDES[1:]])
    refusals: list[Exception] = []
    for side in sides:
        try:
            return _try_on(settings, side)
        except UserError:
            raise
        except Exception as error:  # a model may raise anything on an image of the wrong size
            refusals.append(error)
    images = ' or '.join(f'{side}×{side}' for side in sides)
    found = f'does not run on an image of {images} ({error_line(refusals[0], 160)})'
    expected = 'a model of one main head on feature maps'
    raise UserError('model', found, expected) from refusals[0]


def _try_on(settings: Mapping[str, Any], side: int) -> DryRun:
    """Runs a model on an image of `side` × `side` pixels."""
    built = revert_sync_batchnorm(MODELS.build(copy.deepcopy(settings))).eval()
    head = built.decode_head
    inputs: list[Tensor] = []
    if (layer := getattr(head, 'conv_seg', None)) is not None:
        layer.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    with torch.no_grad():
        features = built.extract_feat(torch.zeros(1, 3, side, side))
        logits = head.forward(features)
        in_training = built.train().extract_feat(torch.zeros(2, 3, side, side))
    if not isinstance(logits, Tensor) or logits.ndim != 4:
        found = f'{type(head).__name__} gives no map of logits'
        raise UserError('model.decode_head', found, 'a head that does')
    if logits.shape[1] < 2:
        expected = 'one output for each class, out_channels=2'
        raise UserError('model.decode_head.out_channels=1', '', expected)
    if _shapes(in_training) != _shapes(features):
        name = type(built.backbone).__name__
        found = f'{name} gives other features in training than at inference'
        raise UserError('model.backbone', found, 'a model that predicts from the same')
    features = [features] if isinstance(features, Tensor) else features
    encoder = type(built.neck if built.with_neck else built.backbone).__name__
    stages = (
        _z(dict(in_index=index), f'output {index} of {encoder}', each, side)
        for index, each in enumerate(features)
    )
    fused = None
    if inputs:
        title = f'what {type(head).__name__} has fused (the input of conv_seg)'
        fused = _z(dict(in_layer='conv_seg'), title, inputs[-1], side)
    return DryRun(tuple(stages), fused, logits.shape[1])


def _shapes(features: Any) -> Any:
    """Shapes of features without the batch dimension, nested like the features."""
    if isinstance(features, Tensor):
        return features.shape[1:]
    return [_shapes(each) for each in features]


def _z(place: dict[str, Any], title: str, features: Any, side: int) -> Z:
    """Describes features; stride 0 means that they are not a map whose stride is a power of two."""
    if not isinstance(features, Tensor) or features.ndim != 4:
        return Z(place, title, 0, 0)
    height, width = features.shape[-2:]
    stride = side // height
    fits = height == width and stride * height == side and not stride & (stride - 1)
    return Z(place, title, features.shape[1], stride if fits else 0)


def choose_z(dry_run: DryRun) -> Z:
    """Chooses the features that the auxiliary decoders take.

    They are what the main head has fused or, if that is coarser than stride 16, the deepest stage
    that is not.

    Raises:
        UserError: No features are a map whose stride is a power of two.
    """
    offered = [stage for stage in dry_run.stages if 0 < stage.stride <= _COARSEST]
    if dry_run.fused is not None and dry_run.fused.stride:
        # coarse fused features are the last choice: a position would stand for 1024 pixels
        offered.insert(len(offered) if dry_run.fused.stride <= _COARSEST else 0, dry_run.fused)
    if not offered:
        found = 'neither the input of conv_seg nor a stage of the backbone is a map at stride 1 to '
        expected = 'one that the auxiliary decoders can take'
        raise UserError('model', f'{found}{_COARSEST}, a power of two', expected)
    return offered[-1]
