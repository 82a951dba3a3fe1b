"""Self-training: a teacher draws masks, a student learns from them and labels the next round.

A round's folder holds `masks/`, drawn by the teacher, and the student's run: `config.py`,
`train/`, `test/` and `log.txt`.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS

from mmseg_cct.apis.run import Run
from mmseg_cct.config.walk import leaf_sets
from mmseg_cct.datasets.leaves import data_folders, infos_of
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.failures import require_buildable
from mmseg_cct.preflight.files import build_evaluation_set
from mmseg_cct.pseudo_labels import teacher_masks
from mmseg_cct.pseudo_labels.teacher_masks import (
    MASKS,
    Unlabeled,
    draw_masks,
    find_unlabeled,
    read_masks,
)
from mmseg_cct.pseudo_labels.writer import LABELS
from mmseg_cct.utils.files import write_text
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.output_folder import OutputFolder, file_stamp
from mmseg_cct.utils.shares import ImageCounts, on_first_process
from mmseg_cct.utils.templates import Table, render

from .execution import StudyRun, prepare_runs, read_metrics
from .study import keep_last_checkpoint, study_config

METHOD, RECORD = 'self-train', 'self_train.json'


@dataclass(frozen=True)
class SelfTraining:
    """A self-training; its settings are the options of `tools/self_train.py`."""

    teacher: str
    student: str
    options: Mapping[str, Any]
    out: Path
    dropped: float = 0.2
    rounds: int = 1
    tta: bool = True
    held_out: int = 200

    def record(self) -> None:
        """Records the settings in the folder.

        Raises:
            UserError: Another self-training is there.
        """
        config = self.student_config()
        taught_by = self.teacher_of(1).checkpoint
        settings = {**vars(self), 'out': None}
        settings['checkpoint'] = [taught_by, *(file_stamp(taught_by) or ())]
        settings['options'] = {key: str(value) for key, value in self.options.items()}
        OutputFolder(self.out, RECORD, data_folders(config), settings).claim()

    def folder(self, number: int) -> Path:
        """The folder of a round, from 1."""
        return self.out / f'round{number}'

    def teacher_of(self, number: int) -> Run:
        """The teacher of a round: the first one, then the student of the round before."""
        work_dir = Path(self.teacher) if number == 1 else self.folder(number - 1) / 'train'
        return Run.open(work_dir)

    def student_config(self) -> Config:
        """The student's config, without masks."""
        return study_config(self.student, {**self.options, 'method': METHOD})

    def draw(self, number: int, device: str | None = None, pictures: int = 6) -> ImageCounts:
        """Draws the masks of a round; several processes may share the work."""
        run, config = self.teacher_of(number), self.student_config()
        on_first_process(lambda: require_buildable(config))  # before hours of masks
        unlabeled = unlabeled_images(config, self.student)
        held_out = held_out_images(config, self.student, self.held_out)
        on_first_process(self.record)
        return draw_masks(
            run.config,
            run.checkpoint,
            unlabeled,
            str(self.folder(number) / 'masks'),
            held_out=held_out,
            dropped=self.dropped,
            tta=self.tta,
            num_pictures=pictures,
            device=device,
        )

    def is_drawn(self, number: int) -> bool:
        """Whether a round has the masks of all images as they are now."""
        folder = self.folder(number) / 'masks'
        if not (folder / MASKS).is_file():
            return False
        unlabeled = unlabeled_images(self.student_config(), self.student)
        masks = OutputFolder(folder, teacher_masks.RECORD)
        same = read_masks(folder).sure.keys() == unlabeled.paths.keys()
        if same and masks.is_made_from(unlabeled.stamps):
            return True
        if not (self.folder(number) / 'train').is_dir():
            return False
        warn(
            f'{folder}: images have changed since their masks were drawn, and the student has '
            'begun to learn from these masks; expected another --out for the images of now'
        )
        return True

    def prepare(self, number: int) -> StudyRun:
        """Writes the config of a round's student."""
        config, masks = self.student_config(), self.folder(number) / 'masks'
        keep_last_checkpoint(config)
        record = read_masks(masks)
        for _, leaf in leaf_sets(config.train_dataloader.dataset.unlabeled):
            leaf['pipeline'] = with_masks(
                leaf.get('pipeline', ()), record.image_dir, str((masks / LABELS).resolve())
            )
        name = f'student {number} of {self.rounds}'
        (run,) = prepare_runs([(name, self.folder(number), config)])
        return run

    def write_report(self) -> Path:
        """Writes `self_training.md`: the students' results and what they learnt from."""
        rows = []
        for number in range(1, self.rounds + 1):
            metrics = read_metrics(self.folder(number)) or {}
            if not (self.folder(number) / 'masks' / MASKS).is_file():
                continue
            sure = list(read_masks(self.folder(number) / 'masks').sure.values())
            miou = f'{metrics["mIoU"]:.1f}' if 'mIoU' in metrics else ''
            rows.append([str(number), str(len(sure)), f'{sum(sure) / len(sure):.0%}', miou])
        header = ['round', 'images labelled', 'pixels kept', 'mIoU of the student, %']
        page = render(
            'studies/self_training.md.jinja',
            teacher=self.teacher,
            student=self.student,
            results=Table(header, rows),
            masks={number: f'{self.folder(int(number)).name}/masks' for number, *_ in rows},
        )
        write_text(self.out / 'self_training.md', page)
        return self.out / 'self_training.md'


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
        expected = 'to begin with the loading of the image and to end with PackSegInputs'
        raise UserError('train_dataloader.dataset.unlabeled.pipeline', ' → '.join(kinds), expected)
    masks = dict(type='LoadPseudoLabels', image_dir=image_dir, label_dir=label_dir)
    return [steps[0], masks, *steps[1:-1], {**steps[-1], 'type': 'PackPseudoLabels'}]
