"""Explains why a data set cannot be built, and names the image that its pipeline fails on."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from mmengine.dataset import Compose

from mmseg_cct.datasets.files.image_files import IMAGE_SUFFIXES, read_list
from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.utils.library_errors import library_errors_as_one_line

from .leaves import leaf_datasets


def explain_failed_build(config: Any, key: str) -> None:
    """Looks for what made the build of a data set fail.

    Raises:
        UserError: If a list or folder of the set is missing or empty.
    """
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


class NamingPipeline(Compose):
    """A pipeline that names the image when a library's transform fails on it.

    Args:
        pipeline: The pipeline.
        key: Name of its data set in messages.
    """

    def __init__(self, pipeline: Compose, key: str) -> None:
        self.transforms, self.key = pipeline.transforms, key

    def __call__(self, info: dict[str, Any]) -> dict[str, Any] | None:
        """Runs the pipeline; errors from other code are bugs and keep their traceback."""
        with failures_named(info.get('img_path') or 'a drawn image', self.key):
            return super().__call__(info)


def failures_named(image: str, key: str) -> AbstractContextManager[None]:
    """Names the image when a library's transform fails on it."""
    return library_errors_as_one_line(
        image, f'{key}.pipeline does not run on it', 'an image and steps that fit together'
    )


def name_images_in_errors(dataset: Any, key: str) -> None:
    """Makes the pipelines of a data set name the image that they fail on."""
    for leaf in leaf_datasets(dataset):
        if isinstance(getattr(leaf, 'pipeline', None), Compose):
            leaf.pipeline = NamingPipeline(leaf.pipeline, key)
