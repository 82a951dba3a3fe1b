"""Lists the images that a batch may be chosen from, and those to leave out."""

import copy
import os
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from mmengine.config import Config
from mmseg.registry import DATASETS

from mmseg_cct.config.walk import leaf_sets
from mmseg_cct.datasets.files.image_files import find_images, resolve_list
from mmseg_cct.datasets.files.leaks import common_images
from mmseg_cct.datasets.leaves import leaf_datasets
from mmseg_cct.datasets.semi_supervised import branch_settings
from mmseg_cct.errors import UserError

# Data infos by the path of the image, or by its index if the data set has no files.
Listed = dict[str, dict[str, Any]]


def images_in(folder: str) -> Listed:
    """Lists the images of a folder and its subfolders; `name` is the path below the folder."""
    return {
        path: dict(
            img_path=path,
            seg_fields=[],
            reduce_zero_label=False,
            name=PurePath(path).relative_to(folder),
        )
        for path in find_images(folder).values()
    }


def unlabeled_images(config: Config, origin: str) -> Listed:
    """Lists the config's unlabelled set; `origin` names the config in messages."""
    settings = branch_settings(_training_set(config), 'unlabeled')
    if settings is None:
        raise UserError(origin, 'no train_dataloader.dataset.unlabeled', 'one, or --images DIR')
    return _images_of(settings, f'{origin}: train_dataloader.dataset.unlabeled')


def labeled_images(config: Config, origin: str) -> Listed:
    """Lists the config's labelled set; empty if it has none."""
    settings = branch_settings(_training_set(config), 'labeled')
    return _images_of(settings, f'{origin}: train_dataloader.dataset.labeled') if settings else {}


def evaluated_images(config: Config, origin: str) -> Listed:
    """Lists the images of the config's validation and test sets."""
    listed: Listed = {}
    for name in ('val_dataloader', 'test_dataloader'):
        if settings := (config.get(name) or {}).get('dataset'):
            listed |= _images_of(settings, f'{origin}: {name}.dataset')
    return listed


def same_images(listed: Listed, others: Listed) -> set[str]:
    """Returns names of listed images among `others`: the same file, a link to it, or a copy."""
    ours, theirs = (
        [name for name, info in images.items() if info.get('img_path')]
        for images in (others, listed)
    )
    return {str(name) for _, name in common_images(ours, theirs)}


def _training_set(config: Config) -> Mapping[str, Any]:
    return (config.get('train_dataloader') or {}).get('dataset') or {}


def _images_of(settings: Mapping[str, Any], key: str) -> Listed:
    settings = copy.deepcopy(settings)
    for _, leaf in leaf_sets(settings):
        leaf['pipeline'] = []  # images are listed, not loaded
        if leaf.get('ann_file'):
            leaf['ann_file'] = resolve_list(leaf['ann_file'])
    try:
        dataset = DATASETS.build(settings)
        dataset.full_init()
    except (AssertionError, OSError, ValueError) as error:
        raise UserError(key, error) from error
    listed: Listed = {}
    for leaf in leaf_datasets(dataset):
        root = (getattr(leaf, 'data_prefix', None) or {}).get('img_path') or ''
        for index in range(len(leaf)):
            info = leaf.get_data_info(index)
            info.pop('seg_map_path', None)  # only images are read
            path = info.get('img_path')
            info['name'] = _name_below(path, root) if path else PurePath(f'{index}.png')
            listed[path or str(len(listed))] = info
    if len({info['name'] for info in listed.values()}) < len(listed):  # folders share file names
        root = os.path.commonpath(listed)
        for path, info in listed.items():
            info['name'] = PurePath(os.path.relpath(path, root))
    return listed


def _name_below(path: str, root: str) -> PurePath:
    inside = PurePath(os.path.relpath(path, root)) if root else PurePath(path)
    return PurePath(inside.name) if '..' in inside.parts or inside.is_absolute() else inside
