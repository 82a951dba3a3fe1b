"""Finds the folders that a config reads its data from."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mmseg_cct.config.walk import settings_of


def data_folders(config: Any) -> set[Path]:
    """Finds the folders of a config's data sets, or the root of a set that names no folder."""
    parts = (part for _, part in settings_of(config, 'config'))
    return {folder for part in parts if hasattr(part, 'items') for folder in _of_dataset(part)}


def _of_dataset(dataset: Any) -> Iterator[Path]:
    root = dataset.get('data_root') or ''
    prefix = dataset.get('data_prefix') or ()
    named = list(prefix.values()) if isinstance(prefix, Mapping) else [prefix]
    named += [dataset.get('image_dir'), dataset.get('mask_dir')]
    folders = [name for name in named if isinstance(name, (str, os.PathLike)) and str(name)]
    if not isinstance(root, (str, os.PathLike)):
        return
    for name in folders:
        yield Path(root, name)
    if root and not folders:
        yield Path(root)
