"""Checks the pipelines of data sets: images and masks move together, unlabelled masks stay shut."""

from collections.abc import Iterator
from typing import Any

from mmcv import transforms as mmcv_transforms
from mmseg.datasets import transforms as mmseg_transforms

from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.datasets.leaves import leaf_datasets, transforms_of
from mmseg_cct.datasets.transforms import (
    LoadPseudoLabels,
    MarkValidPixels,
    PackPseudoLabels,
    PackUnlabeledInputs,
)
from mmseg_cct.errors import Problem, raise_problems
from mmseg_cct.utils.log import warn

_LOADING_MASKS = mmcv_transforms.LoadAnnotations
_RESIZING = (
    mmcv_transforms.Resize,
    mmcv_transforms.RandomResize,
    mmcv_transforms.RandomChoiceResize,
    mmseg_transforms.ResizeToMultiple,
)
_FILLING = (mmcv_transforms.Pad, mmseg_transforms.RandomRotate, mmseg_transforms.RandomRotFlip)
# MMSeg undoes resizing and flips on a prediction, and none of these
_NOT_UNDONE = (*_FILLING, mmseg_transforms.RandomCrop, mmcv_transforms.CenterCrop)
_MOVING = (*_RESIZING, *_NOT_UNDONE, mmcv_transforms.RandomFlip)


def has(dataset: Any, *classes: type) -> bool:
    """Tells whether a set's pipeline has a transform of one of some classes."""
    return any(isinstance(transform, classes) for transform in transforms_of(dataset))


def check_unlabeled_pipeline(dataset: Any) -> None:
    """Checks that the unlabelled set needs no masks and packs the pixels that it marks.

    Logs a warning if a transform fills pixels that nothing marks.
    """
    for leaf in leaf_datasets(dataset):
        raise_problems(_unlabeled_problems(leaf))
        fills = [type(part).__name__ for part in transforms_of(leaf) if isinstance(part, _FILLING)]
        if fills and not has(leaf, MarkValidPixels, LoadPseudoLabels):
            warn(
                f'unlabeled.pipeline: {fills[0]} fills pixels, and the losses count them; expected '
                'MarkValidPixels after the loading and PackUnlabeledInputs at the end'
            )


def mask_loading_problems(dataset: Any) -> Iterator[Problem]:
    """Checks that masks are loaded in full, before anything moves their images."""
    for leaf in leaf_datasets(dataset):
        moving = None
        for transform in transforms_of(leaf):
            if isinstance(transform, _LOADING_MASKS) and moving:
                name = type(transform).__name__
                mistake = f'{moving} before {name} moves the image and not its mask'
                yield Problem('labeled.pipeline', mistake, f'{name} before it')
            if isinstance(transform, mmseg_transforms.RandomRotFlip):  # rotates masks as images
                mistake = 'RandomRotFlip mixes the ids of a mask and fills it with class 0'
                yield Problem('labeled.pipeline', mistake, 'RandomRotate and RandomFlip')
            if isinstance(transform, _MOVING):
                moving = moving or type(transform).__name__


def warn_of_filled_masks(dataset: Any) -> None:
    """Warns of transforms that fill masks with a class, which the network would then learn."""
    for leaf in leaf_datasets(dataset):
        classes = (getattr(leaf, 'metainfo', None) or {}).get('classes') or ()
        for transform in transforms_of(leaf):
            settings = getattr(transform, 'pad_cfg', None) or {}  # of a CenterCrop
            padded = getattr(transform, 'pad_val', settings.get('pad_val'))
            for key, value in (
                ('seg_pad_val', getattr(transform, 'seg_pad_val', None)),
                ('seg_fill_in', getattr(transform, 'seg_fill_in', None)),
                ("pad_val['seg']", padded.get('seg') if isinstance(padded, dict) else None),
            ):
                if isinstance(value, (int, float)) and 0 <= value < len(classes):
                    warn(
                        f'labeled.pipeline: {type(transform).__name__} fills masks with class '
                        f'{classes[int(value)]} ({key}={value}); expected {IGNORE_INDEX}, ignored'
                    )


def cropping_problems(dataset: Any) -> Iterator[Problem]:
    """Checks that predictions cover what the masks cover: MMSeg undoes only resizing and flips."""
    for transform in transforms_of(dataset):
        if isinstance(transform, _LOADING_MASKS):
            return
        if isinstance(transform, _NOT_UNDONE):
            mistake = f'{type(transform).__name__} moves the image and not its mask'
            yield Problem('pipeline', mistake, 'a pipeline without it')


def _unlabeled_problems(dataset: Any) -> Iterator[Problem]:
    key, none = 'unlabeled.pipeline', 'an unlabelled image has none'
    for transform in transforms_of(dataset):
        name, ratio = type(transform).__name__, getattr(transform, 'cat_max_ratio', 1.0)
        if isinstance(transform, _LOADING_MASKS):
            yield Problem(key, f'{name} reads masks', f'a pipeline without it; {none}')
        if ratio < 1.0:
            mistake = f'{name}(cat_max_ratio={ratio}) looks at the mask'
            yield Problem(key, mistake, f'cat_max_ratio=1.0; {none}')
    if has(dataset, LoadPseudoLabels) and has(dataset, PackUnlabeledInputs):
        mistake = 'LoadPseudoLabels with PackUnlabeledInputs'
        yield Problem(key, mistake, 'PackPseudoLabels at the end')
    if has(dataset, MarkValidPixels) and not has(dataset, PackUnlabeledInputs, PackPseudoLabels):
        mistake = 'MarkValidPixels with PackSegInputs'
        yield Problem(key, mistake, 'PackUnlabeledInputs at the end')
