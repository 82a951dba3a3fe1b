"""Explains why a data set cannot be built."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.utils.image_files import IMAGE_SUFFIXES
from mmseg_cct.utils.image_lists import read_list


def explain_failed_build(config: Any, key: str) -> None:
    """Raises a one-line error if a missing or empty list or folder made a build fail."""
    if not isinstance(config, dict):
        return
    root, ann_file = config.get('data_root') or '', config.get('ann_file')
    try:
        if ann_file:
            read_list(os.path.join(root, ann_file))
        raise_problems(_folder_problems(config, root))
    except UserError as error:
        raise error.within(key) from None


def _folder_problems(config: Any, root: str) -> Iterator[Problem]:
    prefix = config.get('data_prefix') or {}
    if 'img_path' not in prefix:
        return
    folder = Path(root, prefix['img_path'])
    suffixes = (config['img_suffix'],) if 'img_suffix' in config else IMAGE_SUFFIXES
    if not folder.is_dir():
        yield Problem(str(folder), 'no such folder', 'the images there (data_prefix.img_path)')
    elif not config.get('ann_file') and not any(
        path.name.endswith(suffixes) for path in folder.rglob('*')
    ):
        expected = f'names that end in {", ".join(suffixes)}'
        yield Problem(str(folder), 'no image in this folder', expected)
