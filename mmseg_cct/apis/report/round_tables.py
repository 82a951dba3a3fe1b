"""Rounds of labelling in the report: the labels that each added, and what they changed."""

import copy
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from mmseg.registry import DATASETS

from mmseg_cct.apis.run import Run
from mmseg_cct.datasets.leaves import infos_of, read_truth
from mmseg_cct.datasets.semi_supervised import branch_settings
from mmseg_cct.utils.templates import Table
from mmseg_cct.utils.text import signed

from .scores import difference, tenths


def round_tables(
    runs: Sequence[Run], iou: Mapping[str, np.ndarray], classes: Sequence[str]
) -> list[Table]:
    """Compares runs if each has all labels of the one before and more; else returns no table.

    `iou` holds the IoU of each class, `(C,)` in [0, 1], by run. The first table has a row for each
    round, the second one for each class: its share of the added pixels, and its change in IoU.
    """
    records = [run.labels for run in runs]
    labeled = [record.labeled if record else [] for record in records]
    steps = list(itertools.pairwise(labeled))
    if not steps or not labeled[0] or not all(set(old) < set(new) for old, new in steps):
        return []
    miou = [round(float(100 * np.nanmean(iou[run.name])), 1) for run in runs]
    rounds = [
        [
            run.name,
            str(len(labeled[index])),
            f'{len(labeled[index]) - len(labeled[index - 1])}' if index else '',
            f'{miou[index]:.1f}',
            signed(miou[index] - miou[index - 1]) if index else '',
        ]
        for index, run in enumerate(runs)
    ]
    masks = _masks_of(runs[-1])
    header, columns = ['class', f'pixels of {runs[0].name}'], [_shares(masks, labeled[0], classes)]
    for before, after, (old, new) in zip(runs, runs[1:], steps):
        added = set(new) - set(old)
        header += [f'pixels added in {after.name}', f'{after.name} − {before.name}']
        columns.append(_shares(masks, added, classes))
        pair = (map(tenths, 100 * iou[run.name]) for run in (before, after))
        gains = [difference(*values) for values in zip(*pair)]
        columns.append(['' if gain is None else signed(gain) for gain in gains])
    return [
        Table(['', 'labelled images', 'added', 'mIoU', 'gain'], rounds),
        Table(header, [list(row) for row in zip(classes, *columns)]),
    ]


def _masks_of(run: Run) -> dict[Any, dict[str, Any]]:
    """Returns the data infos of the labelled images, by the path of the image."""
    settings = branch_settings(run.config.train_dataloader.dataset, 'labeled')
    dataset = DATASETS.build(copy.deepcopy(settings))
    return {info.get('img_path'): info for info in infos_of(dataset)}


def _shares(
    infos: Mapping[Any, dict[str, Any]], images: Iterable[str], classes: Sequence[str]
) -> list[str]:
    """Formats the share of each class in the labelled pixels of images, in %."""
    counts = np.zeros(256, np.int64)
    for path in images:
        if path in infos:  # masks removed since then do not count
            counts += np.bincount(read_truth(infos[path]).ravel(), minlength=256)
    counts = counts[: len(classes)]
    return [f'{100 * count / max(counts.sum(), 1):.1f} %' for count in counts]
