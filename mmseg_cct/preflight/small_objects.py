"""Tells which objects are small for the network, by their widths at its input."""

from collections.abc import Mapping
from typing import Any

from mmseg_cct.datasets.files.object_widths import SMALLEST, ObjectWidths
from mmseg_cct.datasets.leaves import leaf_datasets

_IMAGES = 8  # validation images that are measured
_NAMED = 8  # classes


def describe_small_objects(dataset: Any, model: Any) -> str | None:
    """Names the classes whose objects are small at the size that a set's pipeline gives.

    None if there are none, or if the pipeline shows neither image nor mask.
    """
    scales, by_classes = [], dict[tuple[str, ...], ObjectWidths]()
    for leaf in leaf_datasets(dataset):
        classes = tuple((getattr(leaf, 'metainfo', None) or {}).get('classes') or ())
        widths = by_classes.setdefault(classes, ObjectWidths(classes))
        for index in range(0, len(leaf), -(-len(leaf) // _IMAGES)):
            sample = leaf[index]
            truth = getattr(sample.get('data_samples'), 'gt_sem_seg', None)
            if truth is None:
                return None
            scales.append(sample['inputs'].shape[-1] / truth.data.shape[-1])
            widths.add(truth.data[0].numpy(), scales[-1])
    typical = {k: width for part in by_classes.values() for k, width in part.typical().items()}
    remedy = 'a larger size in the pipelines, or a network of a finer stride, shows more of them'
    if scales and min(scales) < 1 and min(typical.values(), default=SMALLEST) < SMALLEST:
        remedy = (
            'crops at full size in training, and in tests no Resize and '
            "model.test_cfg=dict(mode='slide', crop_size=..., stride=...), show them in about "
            f'{1 / min(scales) ** 2:.0f} times the time an image'
        )
    return narrow_objects(typical, _stride_of(model), remedy)


def narrow_objects(widths: Mapping[str, float], stride: int, remedy: str) -> str | None:
    """Names the classes whose objects are narrower than two pixels or the stride of the network.

    `widths` are typical ones by class, in pixels of the network's input; `stride` is that of the
    network's features, 0 if not known; `remedy` shows more of such objects. None if there are none.
    """
    limit = max(stride, SMALLEST)
    narrow = sorted((width, name) for name, width in widths.items() if width < limit)
    if not narrow:
        return None
    named = ', '.join(f'{name} {width:.1f}' for width, name in narrow[:_NAMED])
    more = f' and {len(narrow) - _NAMED} more classes' if narrow[_NAMED:] else ''
    limits = [f'narrower than {stride}, the stride of the network'] if stride > SMALLEST else []
    if narrow[0][0] < SMALLEST:
        limits.append(f'below {SMALLEST:.0f} they vanish')
    return (
        'objects are typically this wide where the network sees them, in pixels: '
        f'{named}{more}; {", and ".join(limits)}; {remedy}'
    )


def _stride_of(model: Any) -> int:
    """The stride of the features that a model classifies, if its heads tell it, else 0."""
    parts = [model, *getattr(model, 'domains', {}).values()]
    names = 'decode_head', 'auxiliary_head'
    strides = [getattr(getattr(part, name, None), 'stride', 0) for part in parts for name in names]
    return max((stride for stride in strides if isinstance(stride, int)), default=0)
