"""Records the labelled images of a training, so that rounds of labelling can be compared."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mmengine.dist import is_main_process
from mmengine.runner import Runner

from mmseg_cct.datasets.leaves import image_paths
from mmseg_cct.datasets.semi_supervised import SemiSegDataset
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import read_record, write_record
from mmseg_cct.utils.log import warn

# In the work directory of a training.
LABELS = 'labels.json'


class Labels(NamedTuple):
    """The images of a training as it began."""

    labeled: list[str]  # sorted paths
    unlabeled: int  # how many
    validated: Sequence[str] = ()  # sorted paths


def read_labels(work_dir: str | os.PathLike) -> Labels | None:
    """Reads what a training began with; None if there is no record."""
    record = Path(work_dir, LABELS)
    if not record.is_file():
        return None
    return read_record(record, Labels, 'the labelled images of a training, as it began')


def keep_labeled_images(runner: Runner) -> None:
    """Records the labelled images of a training that begins, or compares them when it resumes."""
    dataset = runner.train_dataloader.dataset
    if not isinstance(dataset, SemiSegDataset):
        return
    found = sorted(image_paths(dataset.labeled))
    if not found:  # a data set that generates its images
        return
    loop = runner.val_loop
    validated = sorted(image_paths(loop.dataloader.dataset)) if loop else []
    recorded = read_labels(runner.work_dir) if runner._resume else None
    if recorded is None:
        if is_main_process():
            labels = Labels(found, len(dataset.unlabeled or ()), validated)
            write_record(Path(runner.work_dir, LABELS), labels)
    elif below_folder(recorded.labeled) != below_folder(found):
        began = f'{len(recorded.labeled)} were when the training began'
        raise UserError(
            '--resume',
            f'{len(found)} images are labelled, {began} ({runner.work_dir}/{LABELS})',
            'the same, or a new training with another --work-dir',
        )
    elif below_folder(recorded.validated) != below_folder(validated):
        warn('--resume: other images validate than when the training began; scores do not compare')


def below_folder(paths: Sequence[str]) -> list[str]:
    """Returns paths from their common folder on, which may have moved with its data."""
    here = os.path.join(os.getcwd(), '')
    absolute = [path if os.path.isabs(path) else here + path for path in paths]
    # a folder's name may begin like another's: only whole names are cut off
    start = os.path.commonprefix(absolute)  # noqa: RUF071 (of characters)
    first = len(os.path.join(os.path.dirname(start), ''))
    return [path[first:] for path in absolute]
