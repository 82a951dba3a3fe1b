"""Records the labelled images of a training, so that rounds of labelling can be compared."""

from mmengine.dist import is_main_process
from mmengine.runner import Runner

from mmseg_cct.datasets.leaves import image_paths
from mmseg_cct.datasets.semi_supervised import SemiSegDataset
from mmseg_cct.engine.labels_record import (
    LABELS,
    Labels,
    below_folder,
    checksum,
    read_labels,
    write_labels,
)
from mmseg_cct.errors import UserError
from mmseg_cct.utils.log import warn


def keep_labeled_images(runner: Runner) -> None:
    """Records the labelled images of a training that begins, or compares them when it resumes."""
    dataset = runner.train_dataloader.dataset
    if not isinstance(dataset, SemiSegDataset):
        return
    labeled = sorted(image_paths(dataset.labeled))
    if not labeled:  # a data set that generates its images
        return
    loop = runner.val_loop
    validated = sorted(image_paths(loop.dataloader.dataset)) if loop else []
    unlabeled = list(image_paths(dataset.unlabeled)) if dataset.unlabeled else []
    labels = Labels(labeled, len(unlabeled), validated, checksum(below_folder(unlabeled)))
    recorded = read_labels(runner.work_dir) if runner._resume else None
    if recorded is None:
        if is_main_process():
            write_labels(runner.work_dir, labels)
    elif below_folder(recorded.labeled) != below_folder(labeled):
        began = f'{len(recorded.labeled)} were when the training began'
        problem = f'{len(labeled)} images are labelled, {began} ({runner.work_dir}/{LABELS})'
        raise UserError('--resume', problem, 'the same, or another --work-dir')
    else:
        if below_folder(recorded.validated) != below_folder(validated):
            warn('--resume: other images validate than at the beginning; scores do not compare')
        if (recorded.unlabeled, recorded.pool or labels.pool) != (labels.unlabeled, labels.pool):
            numbers = f'{labels.unlabeled} now, {recorded.unlabeled} at the beginning'
            warn(f'--resume: other unlabelled images than when the training began ({numbers})')
