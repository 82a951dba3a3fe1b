"""Checks the files of a data set's images, again if they change while a run reads them."""

import functools
import os
import time
from collections.abc import Mapping
from typing import Any

from mmcv.transforms import LoadAnnotations

from mmseg_cct.errors import UserError

from .files.images import IdOfColor, image_size, read_mask
from .files.labels import check_mask
from .leaves import image_loader, leaf_datasets, transforms_of


def watch_files(dataset: Any) -> None:
    """Makes a set check images and masks that change from now on, before its pipelines load them.

    All are checked at the start of a run, and it would be slow to check each whenever it is read.
    What a loader of one's own reads is left to it.
    """
    for leaf in leaf_datasets(dataset):
        transforms = getattr(getattr(leaf, 'pipeline', None), 'transforms', None)
        if isinstance(transforms, list) and image_loader(leaf) is not None:
            since = time.time() - 1  # the clock of a file system ticks more slowly
            transforms.insert(0, functools.partial(_check_changed, dataset=leaf, since=since))


def _check_changed(info: dict[str, Any], dataset: Any, since: float) -> dict[str, Any]:
    """A transform that rejects a damaged image, and a mask that does not fit it."""
    masks = (step for step in transforms_of(dataset) if isinstance(step, LoadAnnotations))
    image, mask = info.get('img_path'), info.get('seg_map_path') if any(masks) else None
    is_local = getattr(dataset, 'backend_args', None) is None
    if is_local and any(_has_changed(path, since) for path in (image, mask)):
        size = image_size(str(image), None, True, image_loader(dataset))
        if mask is not None:
            check_mask_of(info, size, dataset)
    return info


def _has_changed(path: str | None, since: float) -> bool:
    """Whether a local file was written, replaced or removed."""
    if path is None or '://' in path:
        return False
    # its time of writing may be older, as that of a file that was copied
    return not os.path.exists(path) or os.stat(path).st_ctime > since


def check_mask_of(
    info: Mapping[str, Any],
    size: tuple[int, int],
    dataset: Any,
    id_of_color: IdOfColor | None = None,
) -> frozenset[int]:
    """Reads and checks the mask of an image; returns its labels."""
    mask, steps = info['seg_map_path'], transforms_of(dataset)
    if 1 in size:  # `LoadAnnotations` drops a side of one pixel
        problem = f'{size[0]}×{size[1]} pixels with a mask'
        raise UserError(info['img_path'], problem, 'two or more on each side')
    decoders = (step.imdecode_backend for step in steps if isinstance(step, LoadAnnotations))
    backend_args = getattr(dataset, 'backend_args', None)
    ids = read_mask(mask, backend_args, next(decoders, 'pillow'), id_of_color)
    mapping = {key: info[key] for key in ('label_map', 'reduce_zero_label') if key in info}
    num_classes, image = len(dataset.metainfo['classes']), info['img_path']
    labels = check_mask(mask, ids, num_classes, image=image, size=size, **mapping)
    return frozenset(labels.values())
