"""Checks that each image of a test gets a prediction file of its own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mmseg_cct.datasets.checks import leaf_datasets
from mmseg_cct.errors import UserError
from mmseg_cct.evaluation import MultiDomainIoUMetric


def require_own_files(metrics: Sequence[Any], dataset: Any) -> None:
    """Checks that no metric writes the predictions of two images to one file.

    MMSeg names the file by the image's, without its folder and extension. A `UserError` names two
    images that would share one.

    Args:
        metrics: The metrics of the test; those without an `output_dir` write nothing.
        dataset: The test set, wrapped or not.
    """
    for metric in metrics:
        folder = getattr(metric, 'output_dir', None)
        if folder is None:
            continue
        # that one gives each domain a subfolder
        is_split = isinstance(metric, MultiDomainIoUMetric)
        for part in dataset.domains.values() if is_split else [dataset]:
            _require_own_names(part, folder)


def _require_own_names(dataset: Any, folder: str) -> None:
    image_of: dict[str, str] = {}
    for leaf in leaf_datasets(dataset):
        for index in range(len(leaf)):
            image = leaf.get_data_info(index).get('img_path')
            if image is None:  # a drawn one
                continue
            name = Path(image).stem
            other = image_of.setdefault(name, image)
            if other != image:
                raise UserError(
                    f'--out {folder}: {other} and {image} would both become {name}.png; expected '
                    'names that differ, or tools/predict.py, which keeps subfolders'
                )
