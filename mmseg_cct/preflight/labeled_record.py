"""Records the labelled images of a training, so that rounds of labelling can be compared."""

import hashlib
import os
from collections.abc import Sequence

from mmengine.dist import is_main_process
from mmengine.runner import Runner

from mmseg_cct.datasets.leaves import image_paths, infos_of
from mmseg_cct.datasets.semi_supervised import SemiSegDataset
from mmseg_cct.errors import UserError
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.output_folder import file_stamp
from mmseg_cct.utils.rounds import LABELS, Labels, read_labels, record_labels


def keep_labeled_images(runner: Runner) -> None:
    """Records the labelled images of a training that begins; warns of files replaced since.

    Raises:
        UserError: It resumes with other labelled images: neither the old training nor a new one.
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
            record_labels(runner.work_dir, _labels(dataset, found))
    elif not _are_the_same(recorded.labeled, found):
        began = f'{len(recorded.labeled)} were when the training began'
        raise UserError(
            '--resume',
            f'{len(found)} images are labelled, {began} ({runner.work_dir}/{LABELS})',
            'the same, or a new training with another --work-dir',
        )
    elif is_main_process() and (changed := recorded.changes(_labels(dataset, found))):
        warn(
            f'--resume: since the training began, {changed} changed; what comes is neither the old '
            'training nor a new one'
        )


def _labels(dataset: SemiSegDataset, labeled: list[str]) -> Labels:
    masks = (info.get('seg_map_path') for info in infos_of(dataset.labeled))
    files = [*labeled, *sorted(filter(None, masks))]
    stamps = {name: file_stamp(file) or [] for name, file in zip(_below_folder(files), files)}
    paths = [] if dataset.unlabeled is None else sorted(image_paths(dataset.unlabeled))
    if not paths:
        return Labels(labeled, 0 if dataset.unlabeled is None else len(dataset.unlabeled), stamps)
    sizes = [(file_stamp(path) or [0])[0] for path in paths]
    content = '\n'.join(f'{name} {size}' for name, size in zip(_below_folder(paths), sizes))
    digest = hashlib.sha256(content.encode(errors='surrogateescape')).hexdigest()[:16]
    return Labels(labeled, len(paths), stamps, digest)


def _are_the_same(recorded: Sequence[str], found: Sequence[str]) -> bool:
    """Compares below the common folder, which may have moved: jobs copy data to a local disk."""
    return len(recorded) == len(found) and _below_folder(recorded) == _below_folder(found)


def _below_folder(paths: Sequence[str]) -> list[str]:
    absolute = [os.path.abspath(path) for path in paths]
    folder = os.path.commonpath([os.path.dirname(path) for path in absolute])
    return [os.path.relpath(path, folder) for path in absolute]
