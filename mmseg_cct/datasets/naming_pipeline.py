"""Pipeline whose errors name the image."""

from contextlib import AbstractContextManager
from typing import Any

from mmengine.dataset import Compose

from mmseg_cct.utils.library_errors import library_errors_as_one_line

from .leaves import leaf_datasets


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
