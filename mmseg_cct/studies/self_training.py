"""Self-training: a teacher draws masks, a student learns from them.

The folder holds `masks/`, drawn by the teacher, and the student's run: `config.py`, `train/`,
`test/` and `log.txt`.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS

from mmseg_cct.analysis.finished_runs import Run, find_run
from mmseg_cct.config.walk import leaf_sets
from mmseg_cct.datasets.data_folders import data_folders
from mmseg_cct.datasets.leaves import infos_of
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.evaluation_set import build_evaluation_set
from mmseg_cct.pseudo_labels import teacher_masks
from mmseg_cct.pseudo_labels.teacher_masks import (
    MASKS,
    Unlabeled,
    draw_masks,
    find_unlabeled,
    read_masks,
)
from mmseg_cct.pseudo_labels.writer import LABELS
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.output_folder import OutputFolder, file_stamp
from mmseg_cct.utils.shares import ImageCounts, on_first_process

from .execution import StudyRun, prepare_runs
from .study_config import keep_last_checkpoint, study_config

METHOD, RECORD = 'self-train', 'self_train.json'


@dataclass(frozen=True)
class SelfTraining:
    """Settings of a self-training.

    Attributes:
        teacher: Work directory of the teacher, or its checkpoint.
        student: Setting of the student.
        options: Settings of the student's config to override.
        out: Folder of the masks and of the student.
        dropped: Share of the least confident pixels of each class, which are ignored.
        tta: Whether the teacher averages over views.
        held_out: Maximum number of validation images to measure the masks' precision on.
    """

    teacher: str
    student: str
    options: Mapping[str, Any]
    out: Path
    dropped: float = 0.2
    tta: bool = True
    held_out: int = 200

    @property
    def masks(self) -> Path:
        return self.out / 'masks'

    def record(self) -> None:
        """Records the settings in the folder.

        Raises:
            UserError: Another self-training is there.
        """
        taught_by = self.find_teacher().checkpoint
        settings = {**vars(self), 'out': None}
        settings['checkpoint'] = [taught_by, *(file_stamp(taught_by) or ())]
        settings['options'] = {key: str(value) for key, value in self.options.items()}
        OutputFolder(self.out, RECORD, data_folders(self.student_config()), settings).claim()

    def find_teacher(self) -> Run:
        return find_run(self.teacher, Path(self.teacher))

    def student_config(self) -> Config:
        """The student's config, without masks."""
        return study_config(self.student, {**self.options, 'method': METHOD})

    def draw(self, device: str | None = None, pictures: int = 6) -> ImageCounts:
        """Draws the masks; several processes may share the work."""
        run, config = self.find_teacher(), self.student_config()
        unlabeled = unlabeled_images(config, self.student)
        held_out = held_out_images(config, self.student, self.held_out)
        on_first_process(self.record)
        return draw_masks(
            run.config,
            run.checkpoint,
            unlabeled,
            str(self.masks),
            held_out=held_out,
            dropped=self.dropped,
            tta=self.tta,
            num_pictures=pictures,
            device=device,
        )

    def is_drawn(self) -> bool:
        """Whether all images as they are now have their masks."""
        if not (self.masks / MASKS).is_file():
            return False
        unlabeled = unlabeled_images(self.student_config(), self.student)
        folder = OutputFolder(self.masks, teacher_masks.RECORD)
        same = read_masks(self.masks).sure.keys() == unlabeled.paths.keys()
        if same and folder.is_made_from(unlabeled.stamps):
            return True
        if not (self.out / 'train').is_dir():
            return False
        # What the student learns from must not change under it, so the old masks stay.
        warn(
            f'{self.masks}: images have changed since their masks were drawn, and the student has '
            'begun to learn from these masks; expected another --out for the images of now'
        )
        return True

    def prepare(self) -> StudyRun:
        """Writes the config of the student."""
        config, record = self.student_config(), read_masks(self.masks)
        keep_last_checkpoint(config)
        for _, leaf in leaf_sets(config.train_dataloader.dataset.unlabeled):
            leaf['pipeline'] = with_masks(
                leaf.get('pipeline', ()), record.image_dir, str((self.masks / LABELS).resolve())
            )
        (run,) = prepare_runs([('student', self.out, config)])
        return run


def unlabeled_images(config: Config, place: str) -> Unlabeled:
    """Finds the images that the student's unlabelled set lists."""
    key = f'{place}: train_dataloader.dataset'
    settings = copy.deepcopy(config.train_dataloader.dataset)
    init_default_scope(config.get('default_scope') or 'mmseg')
    pairs = DATASETS.build(settings)
    if pairs.unlabeled is None:
        raise UserError(f'{key}.unlabeled', 'missing', 'the images to label')
    return find_unlabeled(pairs.unlabeled, pairs.classes, f'{key}.unlabeled')


def held_out_images(config: Config, place: str, most: int) -> list[dict[str, Any]]:
    """Finds at most `most` images of the validation set, evenly spaced."""
    settings = (config.get('val_dataloader') or {}).get('dataset')
    if not most or settings is None:
        return []
    infos = list(infos_of(build_evaluation_set(settings, f'{place}: val_dataloader.dataset')))
    infos = [info for info in infos if info.get('img_path') and info.get('seg_map_path')]
    return infos[:: -(-len(infos) // most)] if infos else []


def with_masks(pipeline: Sequence[Any], image_dir: str, label_dir: str) -> list[Any]:
    """Makes an unlabelled pipeline load masks right after the image, and pack them at its end."""
    marks = ('MarkValidPixels', 'LoadPseudoLabels')
    steps = [step for step in pipeline if step['type'] not in marks]
    kinds = [step['type'] for step in steps]
    packs = ('PackSegInputs', 'PackUnlabeledInputs', 'PackPseudoLabels')
    if not kinds or not kinds[0].startswith('Load') or kinds[-1] not in packs:
        raise UserError(
            'train_dataloader.dataset.unlabeled.pipeline',
            ' → '.join(kinds),
            'to begin with the loading of the image and to end with PackSegInputs',
        )
    masks = dict(type='LoadPseudoLabels', image_dir=image_dir, label_dir=label_dir)
    return [steps[0], masks, *steps[1:-1], {**steps[-1], 'type': 'PackPseudoLabels'}]
