"""Lists the images that a batch may be chosen from, and those to leave out."""

import copy
import os
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from mmseg.registry import DATASETS

from mmseg_cct.apis.run import Run
from mmseg_cct.config.walk import get_by_key, leaf_sets
from mmseg_cct.datasets.files.image_files import find_images, resolve_list
from mmseg_cct.datasets.leaves import leaf_datasets
from mmseg_cct.datasets.semi_supervised import branch_settings

# Data infos by the path of the image; `name` is its path in a batch.
Listed = dict[str, dict[str, Any]]


def images_in(folder: str) -> Listed:
    """Lists the images of a folder and its subfolders."""
    listed: Listed = {}
    for path in find_images(folder).values():
        name = PurePath(path).relative_to(folder)
        listed[path] = dict(img_path=path, seg_fields=[], reduce_zero_label=False, name=name)
    return listed


def images_of(run: Run, key: str) -> Listed:
    """Lists the images of a set of a run's config; empty if there is none."""
    parent, _, branch = key.rpartition('.')
    outer = get_by_key(run.config, parent) or {}
    settings = branch_settings(outer, branch) if isinstance(outer, Mapping) else outer
    if settings is None:
        return {}
    settings = copy.deepcopy(settings)
    for _, leaf in leaf_sets(settings):
        leaf['pipeline'] = []  # images are listed, not loaded
        if leaf.get('ann_file'):
            leaf['ann_file'] = resolve_list(leaf['ann_file'])
    dataset = DATASETS.build(settings)
    dataset.full_init()
    listed: Listed = {}
    for leaf in leaf_datasets(dataset):
        root = (getattr(leaf, 'data_prefix', None) or {}).get('img_path') or ''
        for index in range(len(leaf)):
            info = leaf.get_data_info(index)
            info.pop('seg_map_path', None)  # only images are read
            path = info['img_path']
            inside = PurePath(os.path.relpath(path, root)) if root else PurePath(path)
            is_below = '..' not in inside.parts and not inside.is_absolute()
            info['name'] = inside if is_below else PurePath(inside.name)
            listed[path] = info
    if len({info['name'] for info in listed.values()}) < len(listed):  # folders share file names
        root = os.path.commonpath(listed)
        for path, info in listed.items():
            info['name'] = PurePath(os.path.relpath(path, root))
    return listed
