"""Derives the pipeline of unlabelled images from that of the labelled ones."""

from collections.abc import Mapping, Sequence
from typing import Any

from mmcv.transforms import Compose, LoadAnnotations
from mmseg.datasets.transforms import PackSegInputs
from mmseg.registry import TRANSFORMS

from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import error_line


def pipeline_without_masks(dataset: Any, image: str) -> tuple[list[Any], list[str]]:
    """Makes the pipeline of unlabelled images from that of a labelled set.

    It also returns the types of the transforms left out because they mix images of the set. The
    pipeline is tried on the unlabelled image `image`.

    Raises:
        UserError: A transform needs a mask, or the pipeline gives no inputs.
    """
    labeled = _labeled_pipeline(dataset)
    pipeline = _without_masks(labeled, marks=False)
    _try_pipeline(pipeline, image)  # with marks, it would also run if a transform needs a mask
    if any(TRANSFORMS.get(each['type']) is PackSegInputs for each in labeled):
        pipeline = _without_masks(labeled, marks=True)
    return pipeline, [each['type'] for each in labeled if _mixes(each)]


def _labeled_pipeline(dataset: Any) -> list[Any]:
    """Transforms of the first set, followed by those of the wrappers around it."""
    if isinstance(dataset, Sequence):
        return _labeled_pipeline(dataset[0])
    inner = dataset.get('dataset') or dataset.get('datasets')
    return [*(_labeled_pipeline(inner) if inner else ()), *(dataset.get('pipeline') or ())]


def _mixes(transform: Mapping[str, Any]) -> bool:
    """Whether it mixes in further images of the labelled set."""
    return hasattr(TRANSFORMS.get(transform['type']), 'get_indices')


def _without_masks(labeled: Sequence[Any], marks: bool) -> list[Any]:
    """The transforms that need no masks; with `marks`, marks of valid pixels replace the mask."""
    kept: list[Any] = []
    for transform in labeled:
        if not isinstance(transform, Mapping):  # one of the lists of RandomChoice
            kept.append(_without_masks(transform, marks))
            continue
        kind = TRANSFORMS.get(transform['type'])
        loads = isinstance(kind, type) and issubclass(kind, LoadAnnotations)
        if _mixes(transform) or (loads and not marks):
            continue
        transform = dict(type='MarkValidPixels') if loads else dict(transform)
        transform.pop('_scope_', None)
        if kind is PackSegInputs and marks:
            transform['type'] = 'PackUnlabeledInputs'
        if transform.get('cat_max_ratio', 1.0) < 1.0:
            transform['cat_max_ratio'] = 1.0
        if inner := transform.get('transforms'):  # of RandomApply, RandomChoice and their like
            inner = [inner] if isinstance(inner, Mapping) else inner
            transform['transforms'] = _without_masks(inner, marks)
        kept.append(transform)
    return kept


def _try_pipeline(pipeline: Sequence[Mapping[str, Any]], image: str) -> None:
    sample = dict(img_path=image, seg_fields=[], reduce_zero_label=False)
    key = 'train_dataloader.dataset.pipeline'
    try:
        result = Compose([TRANSFORMS.build(dict(transform)) for transform in pipeline])(sample)
    except Exception as error:  # a transform may raise anything if it finds no mask
        found = f'does not run on {image} without a mask ({error_line(error, 160)})'
        raise UserError(key, found, 'transforms that need none') from error
    if 'inputs' not in (result or ()):
        raise UserError(key, 'gives no inputs', 'PackSegInputs at its end')
