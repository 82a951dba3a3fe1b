"""Records the labelled images of a training, so that rounds of labelling can be compared."""

import os
from collections.abc import Sequence

from mmengine.dist import is_main_process
from mmengine.runner import Runner

from mmseg_cct.datasets.leaves import image_paths
from mmseg_cct.datasets.semi_supervised import SemiSegDataset
from mmseg_cct.errors import UserError
from mmseg_cct.utils.rounds import LABELS, Labels, read_labels, record_labels


def keep_labeled_images(runner: Runner) -> None:
    """Records the labelled images of a training that begins.

    Resuming it with other labelled images is a `UserError`: the result would be neither the old
    training nor a new one.
    """
    dataset = runner.train_dataloader.dataset
    if not isinstance(dataset, SemiSegDataset):
        return
    found = sorted(image_paths(dataset.labeled))
    if not found:  # a data set that generates its images
        return
    recorded = read_labels(runner.work_dir) if runner._resume else None
    if recorded is None:
        if is_main_process():
            unlabeled = 0 if dataset.unlabeled is None else len(dataset.unlabeled)
            record_labels(runner.work_dir, Labels(found, unlabeled))
    elif not _are_the_same(recorded.labeled, found):
        began = f'{len(recorded.labeled)} were when the training began'
        raise UserError(
            '--resume',
            f'{len(found)} images are labelled, {began} ({runner.work_dir}/{LABELS})',
            'the same, or a new training with another --work-dir',
        )


def _are_the_same(recorded: Sequence[str], found: Sequence[str]) -> bool:
    """Compares below the common folder, which may have moved: jobs copy data to a local disk."""
    return len(recorded) == len(found) and _below_folder(recorded) == _below_folder(found)


def _below_folder(paths: Sequence[str]) -> list[str]:
    absolute = [os.path.abspath(path) for path in paths]
    folder = os.path.commonpath([os.path.dirname(path) for path in absolute])
    return [os.path.relpath(path, folder) for path in absolute]
