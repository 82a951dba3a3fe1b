"""What CCT takes of a config of MMSegmentation: features for z, transforms of unlabelled images."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from mmcv.transforms import LoadAnnotations
from mmengine.model import revert_sync_batchnorm
from mmseg.datasets.transforms import GenerateEdge, PackSegInputs
from mmseg.registry import MODELS, TRANSFORMS
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


def pipeline_without_masks(dataset: Any) -> tuple[list[Any], list[str]]:
    """Makes the pipeline of unlabelled images from that of a labelled set, of its first if several.

    It also returns the types of the transforms left out because they mix images of the set.
    """
    labeled: list[Any] = []
    while dataset:  # a wrapper's own transforms come after those of what it wraps
        dataset = dataset[0] if isinstance(dataset, Sequence) else dataset
        labeled = [*(dataset.get('pipeline') or ()), *labeled]
        dataset = dataset.get('dataset') or dataset.get('datasets')
    return _without_masks(labeled), [step['type'] for step in labeled if _mixes(step)]


def _mixes(transform: Mapping[str, Any]) -> bool:
    return hasattr(TRANSFORMS.get(transform['type']), 'get_indices')


def _without_masks(labeled: Sequence[Any]) -> list[Any]:
    """Replaces masks by marks of valid pixels: what a transform fills must not be learned."""
    kept: list[Any] = []
    for transform in labeled:
        if not isinstance(transform, Mapping):  # one of the lists of RandomChoice
            kept.append(_without_masks(transform))
            continue
        if _mixes(transform):
            continue
        transform_class = TRANSFORMS.get(transform['type'])
        if transform_class is GenerateEdge:  # of the mask
            continue
        transform = dict(transform)
        transform.pop('_scope_', None)
        if isinstance(transform_class, type) and issubclass(transform_class, LoadAnnotations):
            transform = dict(type='MarkValidPixels')
        elif transform_class is PackSegInputs:
            transform['type'] = 'PackUnlabeledInputs'
        if 'cat_max_ratio' in transform:  # it looks at the mask
            transform['cat_max_ratio'] = 1.0
        if inner := transform.get('transforms'):  # of RandomApply, RandomChoice and their like
            inner = [inner] if isinstance(inner, Mapping) else inner
            transform['transforms'] = _without_masks(inner)
        kept.append(transform)
    return kept
