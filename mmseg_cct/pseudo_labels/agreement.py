"""Agreement of pseudo labels with masks, by class, as a table on the screen."""

import os
from collections.abc import Sequence
from pathlib import Path

import torch
from mmseg.datasets.transforms import LoadAnnotations
from mmseg.evaluation.metrics import IoUMetric
from prettytable import PrettyTable

from mmseg_cct.datasets.files.images import read_mask
from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.datasets.leaves import infos_of

from .settings import PseudoLabelSettings


def agreement_table(settings: PseudoLabelSettings, out: str, folders: Sequence[str]) -> str:
    """Compares the labels in `folders` below `out` with the masks of `settings.segmentation`.

    An ignored pixel counts as missed in the IoU, and not at all in the precision.
    """
    infos = infos_of(settings.segmentation)
    masked = [info for info in infos if os.path.isfile(info.get('seg_map_path', ''))]
    truths = {os.path.abspath(info['img_path']): info for info in masked}
    if not truths:
        return 'no masks to compare the labels with'
    table = PrettyTable()
    table.add_column('class', [*settings.classes, 'mean'])
    for folder in folders:
        areas = torch.zeros(4, len(settings.classes), dtype=torch.float64)
        for image in settings.images:
            file = Path(out, folder, f'{image.name}.png')
            if file.exists() and image.path in truths:
                # MMSeg's own reader, with the mapping of ids that the set has
                info = LoadAnnotations()(dict(truths[image.path], seg_fields=[]))
                truth = torch.from_numpy(info['gt_seg_map'])
                labels = torch.from_numpy(read_mask(file))
                counts = IoUMetric.intersect_and_union(labels, truth, areas.shape[1], IGNORE_INDEX)
                areas += torch.stack(counts)
        # MMSeg leaves 255 out of its histograms, so a pixel without a label is only in the truth
        intersection, union, labeled, _ = areas
        for name, total in (('IoU', union), ('precision', labeled)):
            values = 100 * intersection / total  # NaN where a class is nowhere
            column = [*values.tolist(), values.nanmean().item()]
            table.add_column(f'{folder}: {name}, %', [f'{value:.1f}' for value in column])
    return table.get_string()
