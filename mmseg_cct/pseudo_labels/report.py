"""Report on pseudo labels: coverage by class, agreement with ground truth, pictures."""

import os
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from mmseg_cct.datasets.files.images import image_size, read_image, read_mask
from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.datasets.leaves import infos_of, read_truth
from mmseg_cct.engine.visualization.figures import outer_legend, picture_grid, png_bytes
from mmseg_cct.engine.visualization.label_maps import class_legend
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.files import check_mask_of
from mmseg_cct.utils.files import write_atomic, write_text
from mmseg_cct.utils.templates import Table, render
from mmseg_cct.utils.text import counted

from .labels_from_maps import strongest
from .settings import PseudoLabelSettings, WeakImage
from .writer import BEFORE_CRF, LABELS, maps_of

T = TypeVar('T')
Truths = dict[str, dict]  # infos for `read_truth`, by path of the image
_TITLES = {BEFORE_CRF: 'Labels before the CRF', LABELS: 'Labels'}
Rows = dict[str, list[Any]]  # pictures `(H, W, 3)` uint8, RGB, or None, by the name of the row


class LabelStatistics(NamedTuple):
    """Pixel counts over all images."""

    pixels: np.ndarray  # (C + 1,) pixels by label; the last ones are ignored
    images: np.ndarray  # (C,) images with pixels of the class
    confusion: np.ndarray  # (C + 1, C) pixels by label and true class, of images with ground truth
    compared: int  # images with ground truth

    @property
    def ignored(self) -> float:
        """Share of pixels without a label, in [0, 1]."""
        return self.pixels[-1] / max(self.pixels.sum(), 1)

    @property
    def iou(self) -> np.ndarray:
        """`(C,)` IoU in [0, 1]; a pixel without a label counts as missed."""
        return _iou(self.confusion)

    @property
    def iou_labeled(self) -> np.ndarray:
        """`(C,)` IoU in [0, 1] over labelled pixels only."""
        return _iou(self.confusion[:-1])

    @property
    def precision(self) -> np.ndarray:
        """`(C,)` share of correct pixels among those labelled with the class."""
        return ratio(self.confusion.diagonal(), self.confusion[:-1].sum(1))


def write_report(model: Any, settings: PseudoLabelSettings, out: str, num_pictures: int) -> None:
    """Writes ``report.md`` and ``pictures.png``, whose maps `model` computes, beside the labels."""
    truths = find_truths(settings.segmentation)
    images = [i for i in settings.images if Path(out, LABELS, f'{i.name}.png').exists()]
    kinds = [BEFORE_CRF, LABELS] if Path(out, BEFORE_CRF).is_dir() else [LABELS]
    statistics = {kind: count(images, Path(out, kind), settings, truths) for kind in kinds}
    if shown := spread(images, num_pictures):
        rows = _rows(model, settings, shown, out, truths)
        write_pictures(out, rows, settings.classes, settings.palette)
    page = render(
        'pseudo_labels/report.md.jinja',
        num_images=counted(len(images), 'image'),
        num_compared=counted(statistics[LABELS].compared, 'image'),
        summary=summary_table(statistics),
        classes=class_table(statistics[LABELS], settings.classes),
        pictures=bool(shown),
    )
    write_text(Path(out, 'report.md'), page)


def find_truths(segmentation: Any) -> Truths:
    """Finds the masks of an MMSeg data set."""
    return {
        os.path.abspath(info['img_path']): info
        for info in infos_of(segmentation)
        if os.path.isfile(info.get('seg_map_path', ''))
    }


def check_truths(settings: PseudoLabelSettings) -> None:
    """Checks that the masks to compare with can be read and are of the right size and ids."""
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
        list(pool.map(check, settings.images))  # in order: the first bad mask is reported


def count(
    images: Sequence[WeakImage], folder: Path, settings: PseudoLabelSettings, truths: Truths
) -> LabelStatistics:
    """Counts labelled pixels and their agreement with the ground truth of `find_truths`."""
    num_classes = len(settings.classes)
    pixels = np.zeros(num_classes + 1, int)
    confusion = np.zeros((num_classes + 1, num_classes), int)
    seen, compared = np.zeros(num_classes, int), 0
    for image in images:
        labels = np.minimum(read_labels(folder, image), num_classes).astype(int)  # 255 comes last
        counts = np.bincount(labels.reshape(-1), minlength=num_classes + 1)
        pixels += counts
        seen += counts[:-1] > 0
        if (info := truths.get(image.path)) is not None:
            truth = read_truth(info)
            known = truth != IGNORE_INDEX
            pairs = labels[known] * num_classes + truth[known]
            confusion += np.bincount(pairs, minlength=confusion.size).reshape(confusion.shape)
            compared += 1
    return LabelStatistics(pixels, seen, confusion, compared)


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
        rows.append([_TITLES[kind], f'{100 * counts.ignored:.1f}', *means])
    header = ['in %', 'ignored pixels', 'mIoU', 'mIoU, labelled', 'mean precision']
    return Table(header, rows)


def class_table(counts: LabelStatistics, classes: Sequence[str]) -> Table:
    """Lists coverage and quality, a row per class."""
    header = ['class', 'images', 'pixels, %', 'IoU, %', 'IoU, labelled, %', 'precision, %']
    shares = 100 * counts.pixels / max(counts.pixels.sum(), 1)
    quality = np.stack([counts.iou, counts.iou_labeled, counts.precision], 1)
    rows = []
    for name, images, share, values in zip(classes, counts.images, shares, quality):
        cells = ['–' if np.isnan(value) else f'{100 * value:.1f}' for value in values]
        rows.append([name, str(images), f'{share:.2f}', *cells])
    return Table(header, rows)


def spread(items: Sequence[T], number: int) -> Sequence[T]:
    """Takes a number of items at equal distances."""
    return items[:: max(len(items) // max(number, 1), 1)][:number]


def write_pictures(
    out: str, rows: Rows, classes: Sequence[str], palette: Sequence[Sequence[int]] | np.ndarray
) -> None:
    """Writes ``pictures.png``: rows of pictures, one image per column, above a legend."""
    images = next(iter(rows.values()))
    figure = picture_grid(rows, max(image.shape[0] / image.shape[1] for image in images))
    outer_legend(figure, class_legend(classes, palette, ignored=True))
    write_atomic(Path(out, 'pictures.png'), png_bytes(figure))


def _rows(
    model: Any, settings: PseudoLabelSettings, images: Sequence[WeakImage], out: str, truths: Truths
) -> Rows:
    """Makes pictures of images, maps, labels and ground truth.

    Ignored pixels are white; in the maps, the brightness of a pixel is its highest score.
    """
    colours = settings.colours
    rows: Rows = defaultdict(list)
    for image in images:
        pixels = read_image(image.path)
        first, score = strongest(*maps_of(model, settings, [(image, pixels)]))
        ids = [settings.label_ids[index] for index in image.class_ids]
        by_map = colours[[settings.background or 0, *ids]][first]
        rows['image'].append(pixels[..., ::-1])
        rows['maps'].append((by_map * score[..., None]).astype(np.uint8))
        for kind in (BEFORE_CRF, LABELS):
            if Path(out, kind).is_dir():
                painted = colours[read_labels(Path(out, kind), image)]
                rows[kind.replace('_', ' ')].append(painted)
        info = truths.get(image.path)
        rows['truth'].append(None if info is None else colours[read_truth(info)])
    if all(picture is None for picture in rows['truth']):
        del rows['truth']
    return rows


def _mean(values: np.ndarray) -> str:
    """Formats the mean in %; if some classes have no value, also how many have one."""
    there = values[~np.isnan(values)]
    if not len(there):
        return '–'
    covered = '' if len(there) == len(values) else f' ({len(there)} of {len(values)} classes)'
    return f'{100 * there.mean():.1f}{covered}'


def _iou(confusion: np.ndarray) -> np.ndarray:
    """IoU `(C,)` of pixels by label and true class, `(C, C)` or `(C + 1, C)`."""
    right, predicted = confusion.diagonal(), confusion[: confusion.shape[1]].sum(1)
    return ratio(right, predicted + confusion.sum(0) - right)


def ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Divides numbers of pixels `(C,)`; NaN where there are none."""
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
