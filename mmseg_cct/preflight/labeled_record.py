"""Records the labelled images of a training, so that rounds of labelling can be compared."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mmengine.dist import is_main_process
from mmengine.runner import Runner

from mmseg_cct.datasets.leaves import image_paths, infos_of
from mmseg_cct.datasets.semi_supervised import SemiSegDataset
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import read_record, write_record
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.output_folder import file_stamp

# In the work directory of a training.
LABELS = 'labels.json'
_EXPECTED = 'the labelled images of a training, as it began'


class Labels(NamedTuple):
    """The images of a training as it began."""

    labeled: list[str]  # sorted paths
    unlabeled: int  # how many
    # Size and mtime of each labelled image and mask, by path below their common folder.
    files: dict[str, list[int]] = {}
    digest: str = ''  # of the unlabelled images' names and sizes, if there are any
    validation: int = 0  # how many images it is validated on; 0 if that is not known

    def changes(self, now: 'Labels') -> str:
        """Names the files that differ in a later record of the same labelled images."""
        before = {name: self.files[name] for name in now.files if name in self.files}
        found = [name for name, stamp in before.items() if stamp != now.files[name]]
        if len(found) == len(before):  # copied to another disk, so only the sizes tell
            found = [name for name, stamp in before.items() if stamp[:1] != now.files[name][:1]]
        more = f' and {len(found) - 3} more' if found[3:] else ''
        parts = [f'{", ".join(found[:3])}{more}'] if found else []
        if self.digest and now.digest and self.digest != now.digest:
            numbers = f'{self.unlabeled} then, {now.unlabeled} now'
            parts.append(f'the names or sizes of the unlabelled images ({numbers})')
        if self.validation and self.validation != now.validation:
            numbers = f'{self.validation} then, {now.validation} now'
            parts.append(f'the validation images ({numbers})')
        return ' and '.join(parts)


def record_labels(work_dir: str | os.PathLike, labels: Labels) -> None:
    """Records what a training begins with."""
    write_record(Path(work_dir, LABELS), labels)


def read_labels(work_dir: str | os.PathLike) -> Labels | None:
    """Reads what a training began with; None if there is no record."""
    record = Path(work_dir, LABELS)
    return read_record(record, Labels, _EXPECTED) if record.is_file() else None


def keep_labeled_images(runner: Runner) -> None:
    """Records the labelled images of a training that begins, or compares them when it resumes."""
    dataset = runner.train_dataloader.dataset
    if not isinstance(dataset, SemiSegDataset):
        return
    found = sorted(image_paths(dataset.labeled))
    if not found:  # a data set that generates its images
        return
    recorded = read_labels(runner.work_dir) if runner._resume else None
    if recorded is None:
        if is_main_process():
            record_labels(runner.work_dir, _labels(runner, found))
    elif len(recorded.labeled) != len(found) or (
        _below_folder(recorded.labeled) != _below_folder(found)
    ):
        began = f'{len(recorded.labeled)} were when the training began'
        raise UserError(
            '--resume',
            f'{len(found)} images are labelled, {began} ({runner.work_dir}/{LABELS})',
            'the same, or a new training with another --work-dir',
        )
    elif is_main_process() and (changed := recorded.changes(_labels(runner, found))):
        warn(
            f'--resume: since the training began, {changed} changed; results will not be comparable'
        )


def _labels(runner: Runner, labeled: list[str]) -> Labels:
    dataset = runner.train_dataloader.dataset
    validation = len(runner.val_dataloader.dataset) if runner.val_loop is not None else 0
    masks = (info.get('seg_map_path') for info in infos_of(dataset.labeled))
    files = [*labeled, *sorted(filter(None, masks))]
    stamps = {name: file_stamp(file) or [] for name, file in zip(_below_folder(files), files)}
    paths = [] if dataset.unlabeled is None else sorted(image_paths(dataset.unlabeled))
    if not paths:
        number = 0 if dataset.unlabeled is None else len(dataset.unlabeled)
        return Labels(labeled, number, stamps, validation=validation)
    sizes = [(file_stamp(path) or [0])[0] for path in paths]
    content = '\n'.join(f'{name} {size}' for name, size in zip(_below_folder(paths), sizes))
    digest = hashlib.sha256(content.encode(errors='surrogateescape')).hexdigest()[:16]
    return Labels(labeled, len(paths), stamps, digest, validation)


def _below_folder(paths: Sequence[str]) -> list[str]:
    # the common folder may have moved: jobs copy data to a local disk
    here = os.path.join(os.getcwd(), '')
    absolute = [path if os.path.isabs(path) else here + path for path in paths]
    start = os.path.commonprefix(absolute)  # noqa: RUF071 (of characters)
    first = len(os.path.join(os.path.dirname(start), ''))
    return [path[first:] for path in absolute]
