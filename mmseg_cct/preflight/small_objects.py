"""Measures whether the objects to find are large enough where the network sees them."""

from typing import Any

from mmseg_cct.datasets.leaves import leaf_datasets
from mmseg_cct.utils.object_widths import SMALLEST, ObjectWidths

_IMAGES = 8  # validation images that are measured


def describe_small_objects(dataset: Any) -> str | None:
    """Names the classes whose objects vanish at the size that a validation set's pipeline gives.

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
    small = {
        name: width
        for widths in by_classes.values()
        for name, width in widths.typical().items()
        if width < SMALLEST
    }
    if not small:
        return None
    scale = min(scales)
    remedy = 'a larger size in the pipelines magnifies them'
    if scale < 1:
        remedy = (
            'crops at full size in training, and in tests no Resize and '
            "model.test_cfg=dict(mode='slide', crop_size=..., stride=...), show them in about "
            f'{1 / scale**2:.0f} times the time an image'
        )
    return (
        f'{", ".join(small)}: objects are typically {min(small.values()):.1f} pixels wide where '
        f'the network sees them, so that they vanish; {remedy}'
    )
