"""Report on pseudo labels: coverage by class, agreement with ground truth, pictures."""

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mmseg.datasets.transforms import LoadAnnotations

from mmseg_cct.datasets.files.images import image_size, read_image, read_mask
from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.datasets.leaves import infos_of
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

Truths = Mapping[str, dict]  # infos for `read_truth`, by path of the image


def read_truth(info: dict[str, Any]) -> np.ndarray:
    """Loads a mask by its data info, `(H, W)` label ids with 255 where ignored."""
    return LoadAnnotations()(dict(info, seg_fields=[]))['gt_seg_map']


class LabelStatistics(NamedTuple):
    """Pixel counts over all images."""

    pixels: np.ndarray  # (C + 1,) pixels by label; the last ones are ignored
    images: np.ndarray  # (C,) images with pixels of the class
    confusion: np.ndarray  # (C + 1, C) pixels by label and true class, of images with ground truth
    compared: int  # images with ground truth

    @property
    def quality(self) -> np.ndarray:
        """`(C, 3)` in [0, 1]: IoU where an ignored pixel is missed, IoU of labels, precision."""
        right, labeled = self.confusion.diagonal(), self.confusion[:-1].sum(1)
        unions = [
            labeled + counts.sum(0) - right for counts in (self.confusion, self.confusion[:-1])
        ]
        wholes = np.stack([*unions, labeled], 1)
        return np.divide(
            right[:, None], wholes, out=np.full(wholes.shape, np.nan), where=wholes > 0
        )


def write_report(model: Any, settings: PseudoLabelSettings, out: str, num_pictures: int) -> None:
    """Writes ``report.md`` and ``pictures.png``, whose maps `model` computes, beside the labels."""
    truths = find_truths(settings.segmentation)
    images = [i for i in settings.images if Path(out, LABELS, f'{i.name}.png').exists()]
    kinds = [BEFORE_CRF, LABELS] if Path(out, BEFORE_CRF).is_dir() else [LABELS]
    statistics = {kind: count(images, Path(out, kind), settings, truths) for kind in kinds}
    # at equal distances: neighbours are often frames of one video
    shown = images[:: max(len(images) // max(num_pictures, 1), 1)][:num_pictures]
    if shown:
        rows = _rows(model, settings, shown, out, truths)
        figure = picture_grid(rows, max(each.shape[0] / each.shape[1] for each in rows['image']))
        outer_legend(figure, class_legend(settings.classes, settings.palette))
        write_atomic(Path(out, 'pictures.png'), png_bytes(figure))
    page = render(
        'pseudo_labels/report.md.jinja',
        num_images=counted(len(images), 'image'),
        num_compared=counted(statistics[LABELS].compared, 'image'),
        tables={
            kind.replace('_', ' '): class_table(counts, settings.classes)
            for kind, counts in statistics.items()
        },
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
    """Checks masks to compare with before the labels are made, which may take hours."""
    truths = find_truths(settings.segmentation)

    def check(image: WeakImage) -> None:
        try:
            size = image_size(image.path, None, decode=False)
        except UserError:  # reported when it is labelled
            return
        check_mask_of(truths[image.path], size, settings.segmentation)

    with ThreadPoolExecutor() as pool:  # in order: the first bad mask is reported
        list(pool.map(check, (image for image in settings.images if image.path in truths)))


def count(
    images: Sequence[WeakImage], folder: Path, settings: PseudoLabelSettings, truths: Truths
) -> LabelStatistics:
    """Counts labelled pixels and their agreement with the ground truth of `find_truths`."""
    num_classes = len(settings.classes)
    pixels = np.zeros(num_classes + 1, int)
    confusion = np.zeros((num_classes + 1, num_classes), int)
    seen, compared = np.zeros(num_classes, int), 0
    for image in images:
        labels = read_mask(folder / f'{image.name}.png')
        labels = np.minimum(labels, num_classes).astype(int)  # 255 comes last
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


def class_table(counts: LabelStatistics, classes: Sequence[str]) -> Table:
    """Lists coverage and quality, a row per class and one of their means."""
    header = ['class', 'images', 'pixels, %', 'IoU, %', 'IoU, labelled, %', 'precision, %']
    shares = 100 * counts.pixels / max(counts.pixels.sum(), 1)
    there = ~np.isnan(counts.quality)
    sums = np.where(there, counts.quality, 0).sum(0)
    means = np.divide(sums, there.sum(0), out=np.full(3, np.nan), where=there.any(0))
    rows = [
        [name, str(images), f'{share:.2f}', *map(_percent, values)]
        for name, images, share, values in zip(classes, counts.images, shares, counts.quality)
    ]
    rows.append(['ignored', '', f'{shares[-1]:.2f}', '', '', ''])
    return Table(header, [*rows, ['mean', '', '', *map(_percent, means)]])


def _percent(value: float) -> str:
    return '–' if np.isnan(value) else f'{100 * value:.1f}'


def _rows(
    model: Any, settings: PseudoLabelSettings, images: Sequence[WeakImage], out: str, truths: Truths
) -> dict[str, list[Any]]:
    """Makes pictures of images, maps, labels and ground truth.

    Ignored pixels are white; in the maps, the brightness of a pixel is its highest score.
    """
    colours = settings.colours
    rows: dict[str, list[Any]] = defaultdict(list)
    for image in images:
        pixels = read_image(image.path)
        first, score = strongest(*maps_of(model, settings, [(image, pixels)]))
        ids = [settings.label_ids[index] for index in image.class_ids]
        by_map = colours[[settings.background or 0, *ids]][first]
        rows['image'].append(pixels[..., ::-1])
        rows['maps'].append((by_map * score[..., None]).astype(np.uint8))
        for kind in (BEFORE_CRF, LABELS):
            if Path(out, kind).is_dir():
                labels = read_mask(Path(out, kind, f'{image.name}.png'))
                rows[kind.replace('_', ' ')].append(colours[labels])
        if truths:
            info = truths.get(image.path)
            rows['truth'].append(None if info is None else colours[read_truth(info)])
    return rows
