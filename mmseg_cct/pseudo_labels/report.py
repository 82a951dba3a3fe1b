"""Report on pseudo labels: coverage by class, agreement with ground truth, pictures."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from mmseg.evaluation import IoUMetric

from mmseg_cct.datasets.leaves import infos_of, read_truth
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.files import check_mask_of
from mmseg_cct.utils.files import write_atomic, write_text
from mmseg_cct.utils.image_files import read_image, read_mask
from mmseg_cct.utils.images import image_size
from mmseg_cct.utils.labels import IGNORE_INDEX
from mmseg_cct.utils.markdown import Table
from mmseg_cct.utils.templates import render
from mmseg_cct.utils.text import counted
from mmseg_cct.visualization.figures import outer_legend, picture_grid, png_bytes
from mmseg_cct.visualization.label_maps import class_legend

from .settings import PseudoLabelSettings, WeakImage
from .thresholds import strongest
from .writer import BEFORE_CRF, LABELS, label_tasks


@dataclass
class LabelStatistics:
    """Pixel counts over all images.

    Attributes:
        pixels: `(C,)` labelled pixels by class.
        images: `(C,)` images with pixels of the class.
        total: All pixels, ignored ones included.
        intersection: `(C,)` pixels with the class in labels and ground truth.
        predicted: `(C,)` labelled pixels of the class that have ground truth.
        true: `(C,)` ground-truth pixels of the class.
        true_labeled: `(C,)` ground-truth pixels of the class that have any label.
        compared: Number of images with ground truth.
    """

    pixels: np.ndarray
    images: np.ndarray
    total: int
    intersection: np.ndarray
    predicted: np.ndarray
    true: np.ndarray
    true_labeled: np.ndarray
    compared: int

    @property
    def ignored(self) -> float:
        """Share of pixels without a label, in [0, 1]."""
        return 1 - self.pixels.sum() / max(self.total, 1)

    @property
    def iou(self) -> np.ndarray:
        """`(C,)` IoU in [0, 1]; a pixel without a label counts as missed."""
        return _ratio(self.intersection, self.predicted + self.true - self.intersection)

    @property
    def iou_labeled(self) -> np.ndarray:
        """`(C,)` IoU in [0, 1] over labelled pixels only."""
        return _ratio(self.intersection, self.predicted + self.true_labeled - self.intersection)

    @property
    def precision(self) -> np.ndarray:
        """`(C,)` share of correct pixels among those labelled with the class."""
        return _ratio(self.intersection, self.predicted)


def write_report(
    model: Any, settings: PseudoLabelSettings, out: str, num_pictures: int = 6
) -> Path:
    """Writes ``report.md`` and ``pictures.png`` into the output folder of the labels.

    The classifier, `model`, computes the maps in the pictures. Returns the path of the report.
    """
    truths = find_truths(settings.segmentation)
    images = [i for i in settings.images if Path(out, LABELS, f'{i.name}.png').exists()]
    kinds = [BEFORE_CRF, LABELS] if Path(out, BEFORE_CRF).is_dir() else [LABELS]
    statistics = {kind: count(images, Path(out, kind), settings, truths) for kind in kinds}
    shown = images[:: max(len(images) // max(num_pictures, 1), 1)][:num_pictures]
    if shown:
        figure = plot_pictures(model, settings, shown, out, truths)
        write_atomic(Path(out, 'pictures.png'), png_bytes(figure))
    page = render(
        'pseudo_labels/report.md.jinja',
        num_images=counted(len(images), 'image'),
        num_compared=counted(statistics[LABELS].compared, 'image'),
        summary=summary_table(statistics),
        heading=f'{_title(LABELS)}, by class',
        classes=class_table(statistics[LABELS], settings.classes),
        pictures=bool(shown),
    )
    write_text(Path(out, 'report.md'), page)
    return Path(out, 'report.md')


def find_truths(segmentation: Any) -> dict[str, dict]:
    """Finds the masks of an MMSeg data set: infos for `read_truth`, by path of the image."""
    return {
        os.path.abspath(info['img_path']): info
        for info in infos_of(segmentation)
        if os.path.isfile(info.get('seg_map_path', ''))
    }


def check_truths(settings: PseudoLabelSettings) -> None:
    """Checks the masks that labels will be compared with, in threads.

    A mask that is unreadable, differs in size from its image or has an unknown id is a `UserError`.
    """
    truths = find_truths(settings.segmentation)

    def check(image: WeakImage) -> None:
        if (info := truths.get(image.path)) is None:
            return
        try:
            size = image_size(image.path, None, decode=False)
        except UserError:  # reported when it is labelled
            return
        check_mask_of(info, size, settings.segmentation)

    with ThreadPoolExecutor() as pool:
        # in order, so the first bad mask is the one reported
        for _ in pool.map(check, settings.images):
            pass


def count(
    images: Sequence[WeakImage],
    folder: Path,
    settings: PseudoLabelSettings,
    truths: dict[str, dict],
) -> LabelStatistics:
    """Counts labelled pixels and their agreement with the ground truth of `find_truths`."""
    num_classes = len(settings.classes)
    sums = {
        name: np.zeros(num_classes)
        for name in ('pixels', 'images', 'intersection', 'predicted', 'true', 'true_labeled')
    }
    total = compared = 0
    for image in images:
        labels = read_labels(folder, image)
        counts = np.bincount(labels.reshape(-1), minlength=256)[:num_classes]
        sums['pixels'] += counts
        sums['images'] += counts > 0
        total += labels.size
        info = truths.get(image.path)
        if info is not None:
            truth = read_truth(info)
            areas = IoUMetric.intersect_and_union(
                torch.from_numpy(labels), torch.from_numpy(truth), num_classes, IGNORE_INDEX
            )
            for name, area in zip(('intersection', None, 'predicted', 'true'), areas):
                if name:
                    sums[name] += area.numpy()
            seen = truth[labels != IGNORE_INDEX]
            sums['true_labeled'] += np.bincount(seen, minlength=256)[:num_classes]
            compared += 1
    return LabelStatistics(total=total, compared=compared, **sums)


def read_labels(folder: Path, image: WeakImage) -> np.ndarray:
    """Reads the pseudo labels of an image, `(H, W)` uint8 label ids."""
    return read_mask(folder / f'{image.name}.png')


def summary_table(statistics: dict[str, LabelStatistics]) -> Table:
    """Lists coverage and mean quality, a row per folder of labels."""
    rows = []
    for kind, counts in statistics.items():
        means = [
            _mean(values) if counts.compared else 'no masks'
            for values in (counts.iou, counts.iou_labeled, counts.precision)
        ]
        rows.append([_title(kind), f'{100 * counts.ignored:.1f}', *means])
    header = ['in %', 'ignored pixels', 'mIoU', 'mIoU, labelled', 'mean precision']
    return Table(header, rows)


def class_table(counts: LabelStatistics, classes: Sequence[str]) -> Table:
    """Lists coverage and quality, a row per class."""
    header = ['class', 'images', 'pixels, %', 'IoU, %', 'IoU, labelled, %', 'precision, %']
    rows = [
        [
            name,
            f'{counts.images[index]:.0f}',
            f'{100 * counts.pixels[index] / max(counts.total, 1):.2f}',
            *(
                '–' if np.isnan(values[index]) else f'{100 * values[index]:.1f}'
                for values in (counts.iou, counts.iou_labeled, counts.precision)
            ),
        ]
        for index, name in enumerate(classes)
    ]
    return Table(header, rows)


def plot_pictures(
    model: Any,
    settings: PseudoLabelSettings,
    images: Sequence[WeakImage],
    out: str,
    truths: dict[str, dict],
) -> Figure:
    """Plots images, maps, labels and ground truth, one image per column, above a legend.

    Ignored pixels are white; in the maps, the brightness of a pixel is its highest score.
    """
    colours = settings.colours
    rows: dict[str, list[np.ndarray | None]] = {}
    for image in images:
        pixels = read_image(image.path)
        (task,) = label_tasks(model, settings, [(image, pixels)], out, with_crf=False)
        first, score = strongest(task.maps)
        by_map = colours[[settings.background or 0, *task.label_ids]][first]
        rows.setdefault('image', []).append(task.image)
        rows.setdefault('maps', []).append((by_map * score[..., None]).astype(np.uint8))
        for kind in (BEFORE_CRF, LABELS):
            if Path(out, kind).is_dir():
                rows.setdefault(kind.replace('_', ' '), []).append(
                    colours[read_labels(Path(out, kind), image)]
                )
        info = truths.get(image.path)
        truth = None if info is None else colours[read_truth(info)]
        rows.setdefault('truth', []).append(truth)
    if not any(picture is not None for picture in rows['truth']):
        del rows['truth']

    figure = picture_grid(rows, pixels.shape[0] / pixels.shape[1])
    outer_legend(figure, class_legend(settings.classes, settings.palette, ignored=True))
    return figure


def _title(kind: str) -> str:
    return {BEFORE_CRF: 'Labels before the CRF', LABELS: 'Labels'}[kind]


def _mean(values: np.ndarray) -> str:
    """Formats the mean in %; if some classes have no value, also how many have one."""
    there = values[~np.isnan(values)]
    if not len(there):
        return '–'
    covered = '' if len(there) == len(values) else f' ({len(there)} of {len(values)} classes)'
    return f'{100 * there.mean():.1f}{covered}'


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
