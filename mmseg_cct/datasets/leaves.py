"""Looks into data sets: the folders of a config's, and what a built one wraps, loads and runs."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mmcv.transforms import LoadImageFromFile

from mmseg_cct.config.walk import settings_of


def data_folders(config: Any) -> set[Path]:
    """Finds the folders of a config's data sets, or the root of a set that names no folder."""
    folders = set()
    for _, part in settings_of(config, 'config'):
        root = part.get('data_root') or '' if hasattr(part, 'items') else None
        if not isinstance(root, (str, os.PathLike)):
            continue
        prefix = part.get('data_prefix') or ()
        named = list(prefix.values()) if isinstance(prefix, Mapping) else [prefix]
        named += [part.get(key) for key in ('image_dir', 'mask_dir', 'weak_masks')]
        paths = [name for name in named if isinstance(name, (str, os.PathLike)) and str(name)]
        if root or paths:
            folders |= {Path(root, name) for name in paths or ['']}
    return folders


def leaf_datasets(dataset: Any) -> list[Any]:
    """Unwraps mmengine's `ConcatDataset`, `RepeatDataset` and similar wrappers."""
    if hasattr(dataset, 'datasets'):
        return [leaf for part in dataset.datasets for leaf in leaf_datasets(part)]
    if hasattr(dataset, 'dataset'):
        return leaf_datasets(dataset.dataset)
    return [dataset]


def infos_of(dataset: Any) -> Iterator[dict[str, Any]]:
    """Yields the data infos of a set's images, wrapped or not; drawn images name no file."""
    for leaf in leaf_datasets(dataset):
        for index in range(len(leaf)):
            yield leaf.get_data_info(index)


def image_paths(dataset: Any) -> Iterator[str]:
    """Yields the paths of a set's images, which may be addresses on other storage."""
    for info in infos_of(dataset):
        if (path := info.get('img_path')) is not None:
            yield path


def transforms_of(dataset: Any) -> Iterator[Any]:
    """Yields the transforms of a set's pipeline, those that hold others before these."""
    remaining = [getattr(dataset, 'pipeline', ())]
    while remaining:
        transform = remaining.pop(0)
        if isinstance(transform, (list, tuple)):
            remaining[:0] = transform
        else:
            yield transform
            # RandomApply, RandomChoice and similar transforms keep theirs in `transforms` too.
            remaining.insert(0, getattr(transform, 'transforms', ()))


def image_loader(dataset: Any) -> LoadImageFromFile | None:
    """Finds the transform that loads the images of a data set."""
    return next((t for t in transforms_of(dataset) if isinstance(t, LoadImageFromFile)), None)
