"""Masks that a trained network draws for unlabelled images, 255 where it is not confident.

The output folder gets `predictions/NAME.png` and `sureness/NAME.png` while the network labels the
images. Once the sure pixels of each class are known, it gets `labels/NAME.png`, `masks.json`,
`report.md` and `pictures.png`.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mmengine.config import Config
from mmengine.dist import get_rank
from PIL import Image

from mmseg_cct.apis.inference import model_origin
from mmseg_cct.datasets.files.image_files import add_by_name
from mmseg_cct.datasets.files.images import (
    as_rgb,
    check_image,
    explain_unreadable,
    read_mask,
    write_png,
)
from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.datasets.leaves import data_folders, infos_of, read_truth
from mmseg_cct.engine.visualization.label_maps import full_palette
from mmseg_cct.errors import UserError, raise_problems
from mmseg_cct.preflight.classes import order_problems
from mmseg_cct.preflight.failures import first_image_guards
from mmseg_cct.utils.files import read_record, write_record, write_text
from mmseg_cct.utils.output_folder import OutputFolder, file_stamp
from mmseg_cct.utils.shares import ImageCounts, SharedImages, gather, own_share
from mmseg_cct.utils.templates import render
from mmseg_cct.utils.text import counted

from .report import Rows, spread, write_pictures
from .sureness import LEVELS, count_levels, count_right, cuts_by_share, masks_of, precision_table
from .teacher import Teacher
from .writer import LABELS

RECORD, MASKS = 'teacher.json', 'masks.json'
PREDICTIONS, SURENESS = 'predictions', 'sureness'


class Unlabeled(NamedTuple):
    """The images to label, as paths by name below a folder, and the classes of the student."""

    folder: str
    paths: dict[str, str]
    classes: Sequence[str]

    @property
    def stamps(self) -> dict[str, Any]:
        """Size and time of the files, by name."""
        return {name: file_stamp(path) for name, path in self.paths.items()}


class MasksRecord(NamedTuple):
    """The content of a folder of masks."""

    image_dir: str
    dropped: float  # share of the pixels of each class that do not teach
    classes: list[str]
    cuts: list[int]  # level from which on the pixels of a class teach
    pixels: list[list[int]]  # numbers of pixels by class and level
    sure: dict[str, float]  # share of pixels that teach, by image in the order of the set


def find_unlabeled(dataset: Any, classes: Sequence[str], place: str) -> Unlabeled:
    """Lists the images of an unlabelled set, which messages call `place`.

    Raises:
        UserError: If an image has no local file or two differ in their extension only.
    """
    paths = [os.path.abspath(info.get('img_path') or '') for info in infos_of(dataset)]
    if not paths or not all(map(os.path.isfile, paths)):
        raise UserError(place, 'has images without a local file', 'files to label')
    folder = os.path.commonpath([os.path.dirname(path) for path in paths])
    by_name: dict[str, Path] = {}
    for path in map(Path, paths):
        add_by_name(by_name, path, Path(folder), path.suffix)
    return Unlabeled(folder, {name: str(path) for name, path in by_name.items()}, classes)


def draw_masks(
    config: Config,
    checkpoint: str,
    unlabeled: Unlabeled,
    out: str,
    *,
    held_out: Sequence[Mapping[str, Any]] = (),
    dropped: float = 0.2,
    tta: bool = True,
    num_pictures: int = 6,
    device: str | None = None,
) -> ImageCounts:
    """Labels images, and reports how sure and, on held-out images, how right the labels are.

    Images that an earlier run finished are skipped, unless they have changed. Connected processes
    share the images, and the first writes the report.

    `config`, `checkpoint`, `device` and `tta` are those of the `Teacher`. `held_out` are data infos
    of labelled images that nothing was trained on. `dropped` is the share in [0, 1) of the least
    confident pixels of each class, which are ignored.

    Raises:
        UserError: If the teacher has other classes, or the folder holds masks of another teacher.
    """
    teacher = Teacher(config, checkpoint, device, tta)
    meta = dict(classes=tuple(unlabeled.classes))
    known = teacher.dataset_meta['classes']
    if len(known) != len(unlabeled.classes):
        raise UserError(
            checkpoint,
            f'labels {len(known)} classes ({", ".join(known[:4])}, ...)',
            f'the {len(unlabeled.classes)} of the student ({", ".join(unlabeled.classes)})',
        )
    raise_problems(order_problems(meta, teacher.dataset_meta, checkpoint))

    masks, origin = _Masks(teacher, unlabeled, out), model_origin(config, checkpoint, tta=tta)
    with OutputFolder(out, RECORD, data_folders(config), origin) as folder:
        Path(out, MASKS).unlink(missing_ok=True)  # a folder that holds it is done
        todo = folder.remaining(unlabeled.stamps, SURENESS)
        counts = masks.predict(todo, first_image_guards(config))
        if counts.failed:  # the student could not read them either
            return counts
        precision = masks.precision_on(held_out)
        record = masks.write_labels(dropped)
        if get_rank() == 0:
            masks.write_report(record, precision, num_pictures)
            write_record(Path(out, MASKS), record)
    return counts


def read_masks(out: str | Path) -> MasksRecord:
    """Reads the record of a folder of masks."""
    file = Path(out, MASKS)
    return read_record(file, MasksRecord, 'the record of masks: remove it, and they are drawn anew')


class _Masks(NamedTuple):
    """The masks that a teacher draws for images, and where they go."""

    teacher: Teacher
    unlabeled: Unlabeled
    out: str

    @property
    def colours(self) -> np.ndarray:
        return full_palette(self.teacher.dataset_meta['palette'])

    def predict(self, todo: Sequence[str], guards: Iterator[AbstractContextManager]) -> ImageCounts:
        """Labels the images that are left, and says how sure the labels are."""
        paths = self.unlabeled.paths
        share = SharedImages(todo, len(paths) - len(todo))
        with share:
            for name in share.own:
                try:
                    check_image(dict(img_path=paths[name]), self.teacher.loader)
                except Exception as error:  # Pillow and OpenCV raise nearly anything on a bad file
                    share.failed(explain_unreadable(paths[name], 'image', error))
                else:
                    with next(guards):
                        labels, levels = self.teacher(paths[name])
                    write_png(self.file(PREDICTIONS, name), Image.fromarray(labels), self.colours)
                    write_png(self.file(SURENESS, name), Image.fromarray(levels))  # it is done
                    share.written()
        return share.total()

    def file(self, folder: str, name: str) -> Path:
        return Path(self.out, folder, f'{name}.png')

    def read(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        return read_mask(self.file(PREDICTIONS, name)), read_mask(self.file(SURENESS, name))

    def precision_on(self, held_out: Sequence[Mapping[str, Any]]) -> np.ndarray | None:
        """Counts pixels, and right ones, of held-out images by predicted class and level.

        Returns `(2, C, 256)`; None without images.
        """
        if not held_out:
            return None
        num_classes = len(self.unlabeled.classes)
        total = np.zeros((2, num_classes, LEVELS), np.int64)
        for info in own_share(held_out):
            labels, levels = self.teacher(info['img_path'])
            total += count_right(labels, levels, read_truth(dict(info)), num_classes)
        return np.sum(gather(total), axis=0)

    def write_labels(self, dropped: float) -> MasksRecord:
        """Finds the cut of each class over all images, writes masks and returns their record."""
        folder, paths, classes = self.unlabeled
        share = own_share(list(paths))
        mine = np.zeros((len(classes), LEVELS), np.int64)
        for name in share:
            mine += count_levels(*self.read(name), len(classes))
        pixels = np.sum(gather(mine), axis=0)
        cuts = cuts_by_share(pixels, dropped)
        sure: dict[str, float] = {}
        for name in share:
            labels, levels = self.read(name)
            mask = masks_of(labels, levels, cuts)
            write_png(self.file(LABELS, name), Image.fromarray(mask), self.colours)
            sure[name] = float((mask != IGNORE_INDEX).mean())
        merged = {name: value for part in gather(sure) for name, value in part.items()}
        of_all = {name: merged[name] for name in paths}
        counts = cuts.tolist(), pixels.tolist()
        return MasksRecord(folder, float(dropped), list(classes), *counts, of_all)

    def write_report(
        self, record: MasksRecord, held_out: np.ndarray | None, num_pictures: int
    ) -> None:
        paths, meta = self.unlabeled.paths, self.teacher.dataset_meta
        if shown := spread(list(paths), num_pictures):
            write_pictures(self.out, self._rows(shown), meta['classes'], meta['palette'])
        pixels, cuts = np.array(record.pixels), np.array(record.cuts)
        page = render(
            'pseudo_labels/masks.md.jinja',
            num_images=counted(len(paths), 'unlabelled image'),
            precision=precision_table(record.classes, pixels, cuts, held_out),
            pictures=bool(shown),
        )
        write_text(Path(self.out, 'report.md'), page)

    def _rows(self, names: Sequence[str]) -> Rows:
        """Makes pictures of images, predictions and masks; unsure pixels are white."""
        paths = [self.unlabeled.paths[name] for name in names]
        rows: Rows = dict(image=[as_rgb(self.teacher.load(path)) for path in paths])
        for title, folder in dict(prediction=PREDICTIONS, teaches=LABELS).items():
            rows[title] = [self.colours[read_mask(self.file(folder, name))] for name in names]
        return rows
