"""Calibration of a trained model's predictions on a labelled set, as a figure and numbers."""

from pathlib import Path
from typing import Any

import numpy as np
from mmengine.registry import init_default_scope
from tqdm import tqdm

from mmseg_cct.apis.inference import load_model
from mmseg_cct.checks.classes import order_problems, output_problems
from mmseg_cct.config.domains import require_one_domain
from mmseg_cct.config.load import load_config
from mmseg_cct.datasets.data_folders import data_folders
from mmseg_cct.datasets.evaluation_set import build_evaluation_set
from mmseg_cct.engine.checkpoints import read_checkpoint, require_checkpoint
from mmseg_cct.errors import UserError, raise_problems
from mmseg_cct.evaluation.calibration import CalibrationCounts
from mmseg_cct.evaluation.pseudo_label_counts import PseudoLabelCounts
from mmseg_cct.evaluation.score_maps import count_decoders, resize_nearest, score_maps
from mmseg_cct.evaluation.sureness import (
    LEVELS,
    confidence_of,
    count_right,
    cuts_by_precision,
    levels_of,
    precision_table,
)
from mmseg_cct.models.segmentors.requirements import require_one_output_per_class
from mmseg_cct.utils.files import write_text
from mmseg_cct.utils.output_folder import OutputFolder
from mmseg_cct.visualization.calibration import RECORD, write_calibration_files

from .ranking import require_auxiliary_decoders

_THRESHOLDS = """\
# FixMatch on the pixels that teach: from these confidences on {share} of each predicted class were
# right on {split}; None: never. Other images than those have to judge what is trained by it.
_base_ = 'mmseg_cct::methods/fixmatch.py'
model = dict(
    loss_strong=dict(threshold=dict(_delete_=True, type='ClassThreshold', values=[{values}]))
)
"""


def write_calibration(
    config_file: str,
    checkpoint: str,
    out: str,
    *,
    split: str = 'val',
    options: dict[str, Any] | None = None,
    device: str | None = None,
    seed: int = 0,
    threshold: float = 0.95,
    precision: float | None = None,
) -> dict[str, Any]:
    """Measures both scores on a labelled set and writes `calibration.png` and `calibration.json`.

    `split` is 'val' or 'test', and `threshold` the τ in [0, 1] of the pseudo labels by class. With
    a `precision` in (0, 1], `thresholds.py` is written too: a FixMatch config with the confidence
    of each class from which on this share of its pixels is right.

    Returns the content of `calibration.json`: the number of `images`; the `calibration_record` of
    `confidence`, in ten bins, and, if the model has auxiliary decoders, of `agreement`, with a bin
    for each number of decoders that occurs; `PseudoLabelCounts.record` under `pseudo_labels`; and,
    with a precision, the table of the pixels that teach under `teaches`. A `UserError` names what
    is missing or bad.
    """
    if not 0 <= threshold <= 1:
        raise UserError(f'--threshold {threshold}: expected a confidence in [0, 1]')
    if precision is not None and not 0 < precision <= 1:
        raise UserError(f'--precision {precision}: expected a share in (0, 1]')
    config = load_config(config_file, options or {})
    require_one_domain(config, config_file)
    init_default_scope(config.get('default_scope') or 'mmseg')
    require_checkpoint(checkpoint)
    key = f'{split}_dataloader.dataset'
    settings = (config.get(f'{split}_dataloader') or {}).get('dataset')
    dataset = build_evaluation_set(settings, f'{config_file}: {key}')
    content = read_checkpoint(checkpoint)
    meta = content.get('meta') or {}
    raise_problems(order_problems(dataset.metainfo, meta.get('dataset_meta'), 'the checkpoint'))
    model = load_model(config, checkpoint, device, content=content)
    raise_problems(output_problems(model, dataset.metainfo, key))
    require_one_output_per_class(model.decode_head)
    if count_decoders(model):
        require_auxiliary_decoders(model, content, checkpoint)
    OutputFolder(out, 'calibration_of.json', data_folders(config)).claim()
    classes = model.dataset_meta['classes']
    counts = CalibrationCounts(count_decoders(model))
    pseudo_labels = PseudoLabelCounts(len(classes), threshold)
    by_level = np.zeros((2, len(classes), LEVELS), np.int64)  # pixels, and right ones
    for index in tqdm(range(len(dataset)), unit='image'):
        item = dataset[index]
        if 'gt_sem_seg' not in item['data_samples']:
            raise UserError(f'{config_file}: {key}: has no masks; expected labelled images')
        scores, labels = score_maps(model, item, classes, seed)
        truth = resize_nearest(item['data_samples'].gt_sem_seg.data, labels.shape)
        counts.add(scores, labels, truth)
        pseudo_labels.add(scores['confidence'], labels, truth)
        if precision is not None:
            levels = levels_of(scores['confidence'].numpy())
            by_level += count_right(labels.numpy(), levels, truth.numpy(), len(classes))
    if not counts.pixels_and_right['confidence'].sum():
        raise UserError(f'{config_file}: {key}: no pixel with a class; expected labelled images')

    extra: dict[str, Any] = {}
    if precision is not None:
        cuts = cuts_by_precision(by_level[0], by_level[1], precision)
        extra['teaches'] = precision_table(classes, by_level[0], cuts, by_level)
        values = [None if cut >= LEVELS else round(confidence_of(int(cut)), 7) for cut in cuts]
        extra['teach_nothing'] = [name for name, value in zip(classes, values) if value is None]
        text = _THRESHOLDS.format(
            share=f'{precision:.0%}', split=split, values=', '.join(map(str, values))
        )
        write_text(Path(out, 'thresholds.py'), text)
    return write_calibration_files(
        out,
        counts.reliability(),
        images=len(dataset),
        pseudo_labels=pseudo_labels.record(classes),
        **extra,
    )
