"""Pseudo labels from image-level labels: class activation maps, thresholds, dense CRF."""

import os
from collections.abc import Sequence
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.dist import get_rank
from mmseg.datasets.transforms import LoadAnnotations
from mmseg.evaluation.metrics import IoUMetric
from prettytable import PrettyTable

from mmseg_cct.datasets.files.images import read_mask
from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.datasets.leaves import data_folders, infos_of
from mmseg_cct.engine.visualization import full_palette
from mmseg_cct.errors import raise_problems
from mmseg_cct.preflight.classes import order_problems, output_problems
from mmseg_cct.utils.log import say
from mmseg_cct.utils.output_folder import OutputFolder, file_stamp
from mmseg_cct.utils.processes import ImageCounts, SharedImages

from .cam import load_classifier
from .labels_from_maps import require_pydensecrf
from .settings import PseudoLabelSettings, read_settings
from .writer import BEFORE_CRF, LABELS, RECORD, LabelWriter, write_pseudo_labels


def make_pseudo_labels(
    config: Config,
    checkpoint: str,
    out: str,
    *,
    with_crf: bool = True,
    workers: int = 1,
    batch_size: int = 8,
    device: str = 'cpu',
) -> ImageCounts:
    """Generates pseudo labels for a config's images, and logs how they agree with its masks.

    Images that an earlier run finished are skipped unless the file or its image-level labels have
    changed. Connected processes share the images, and the first logs the table.

    `config` and `checkpoint` are the classifier's, and `batch_size` is the number of images that it
    takes at a time; 0 `workers` work in this process.
    """
    if with_crf:
        require_pydensecrf()
    settings = read_settings(config)
    model = load_classifier(config, checkpoint, device)
    # By name: the classifier counts without the background, the labels with it.
    meta = dict(classes=[settings.classes[label_id] for label_id in settings.label_ids])
    raise_problems(output_problems(model, meta, 'pseudo_labels.images'))
    raise_problems(order_problems(meta, model.dataset_meta, checkpoint))

    made_of = {i.name: [list(i.class_ids), file_stamp(i.path)] for i in settings.images}
    origin = settings.origin(model.state_dict(), with_crf)
    with OutputFolder(out, RECORD, data_folders(config), origin) as folder:
        names = set(folder.remaining(made_of, LABELS))
        todo = [image for image in settings.images if image.name in names]
        share = SharedImages(todo, len(settings.images) - len(todo))
        crf = settings.crf if with_crf else None
        # White beyond the ids: a shorter palette makes a PNG of fewer bits, which cannot hold 255.
        palette = full_palette(settings.palette)
        writer = LabelWriter(settings.background, settings.thresholds, crf, palette, out)
        write_pseudo_labels(model, settings, share, writer, workers, batch_size)
        counts = share.total()
        if get_rank() == 0:
            say(agreement_table(settings, out, [BEFORE_CRF, LABELS] if with_crf else [LABELS]))
    return counts


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
