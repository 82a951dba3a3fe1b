"""Derives the pipeline of unlabelled images from that of the labelled ones."""

from collections.abc import Mapping, Sequence
from typing import Any

from mmcv.transforms import LoadAnnotations
from mmseg.datasets.transforms import GenerateEdge, PackSegInputs
from mmseg.registry import TRANSFORMS


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
    """Whether it mixes in further images of the labelled set."""
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
