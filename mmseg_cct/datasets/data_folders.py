"""Finds the folders that a config reads its data from."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mmengine.config import Config


def data_folders(config: Any) -> set[Path]:
    """Finds the folders of images and masks that a config names.

    Args:
        config: A config or a part of one.

    Returns:
        The folders of all data sets in it, and their roots where they name nothing below.
    """
    return set(_find(config))


def _find(part: Any) -> Iterator[Path]:
    if isinstance(part, (Mapping, Config)):
        yield from _of_dataset(part)
        for value in part.values():
            yield from _find(value)
    elif isinstance(part, Sequence) and not isinstance(part, (str, bytes)):
        for value in part:
            yield from _find(value)


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
