"""Calibration of pseudo labels: how often they are right, by confidence and by agreement.

A method on pseudo labels has to tell right pixels from wrong ones without their truth. The field
asks for the main decoder's confidence; `AgreementGate` for the share of the K auxiliary decoders
that choose its class. On labelled images both can be held against the truth.
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm

from mmseg_cct.apis.config import load_config
from mmseg_cct.datasets.data_folders import data_folders
from mmseg_cct.engine.checkpoints import require_checkpoint
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import claim_output_folder, write_atomic

from .plots import png_bytes
from .ranking import load_training_model

RECORD, FIGURE = 'calibration.json', 'calibration.png'
# So fine that the order of confidences is kept where most of them are close to 1.
_CONFIDENCE_BINS = 10_000
_SHOWN_BINS = 10
_IGNORED = 255


@dataclass(frozen=True)
class Reliability:
    """Right pixels by a score.

    Attributes:
        scores: `(B,)` mean score of each bin, ascending, in [0, 1].
        pixels: `(B,)` pixels in it.
        right: `(B,)` pixels of these that are right.
    """

    scores: np.ndarray
    pixels: np.ndarray
    right: np.ndarray

    @property
    def separation(self) -> float:
        """Probability that a right pixel scores above a wrong one, ties half (AUROC); or NaN."""
        wrong = self.pixels - self.right
        below = np.cumsum(wrong) - wrong / 2
        pairs = float(self.right.sum()) * float(wrong.sum())
        return float((self.right * below).sum()) / pairs if pairs else float('nan')

    @property
    def calibration_error(self) -> float:
        """Mean distance of a bin's score to its share of right pixels (ECE), by pixels."""
        distance = np.abs(self.scores * self.pixels - self.right)
        return float(distance.sum() / self.pixels.sum())

    def merged(self, bins: int) -> 'Reliability':
        """Joins neighbouring bins, B a multiple of their new number, and leaves out empty ones."""
        pixels, right, total = (
            values.reshape(bins, -1).sum(1)
            for values in (self.pixels, self.right, self.scores * self.pixels)
        )
        kept = pixels > 0
        return Reliability(total[kept] / pixels[kept], pixels[kept], right[kept])


def write_calibration(
    config_file: str,
    checkpoint: str,
    out: str,
    *,
    split: str = 'val',
    options: dict[str, Any] | None = None,
    device: str | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Measures both scores on a labelled set and writes `calibration.png` and `calibration.json`.

    Args:
        config_file: Path of the training's config.
        checkpoint: Checkpoint of the training, with its auxiliary decoders.
        out: Output folder.
        split: Data set of the config, 'val' or 'test'.
        options: Settings to override, by dotted key.
        device: Device of the model; by default the first GPU, else the CPU.
        seed: Seed of the perturbations, the same for every image.

    Returns:
        What `calibration.json` holds: the number of `images`; for `confidence`, in ten bins, and
        `agreement`, a bin for each number of decoders that occurs, the three arrays of
        `Reliability`, its `separation` before bins are joined, and its `calibration_error`.

    Raises:
        UserError: A file, the set, its masks or the auxiliary decoders are missing.
    """
    config = load_config(config_file, options or {})
    init_default_scope(config.get('default_scope', 'mmseg'))
    require_checkpoint(checkpoint)
    key = f'{split}_dataloader.dataset'
    dataset = _build_dataset(config, split, f'{config_file}: {key}')
    model = load_training_model(config, checkpoint, device)
    claim_output_folder(out, RECORD, data_folders(config))
    sizes = dict(confidence=_CONFIDENCE_BINS, agreement=model.auxiliary_head.num_decoders + 1)
    counts = {name: np.zeros((2, size), np.int64) for name, size in sizes.items()}
    for index in tqdm(range(len(dataset)), unit='image'):
        item = dataset[index]
        if 'gt_sem_seg' not in item['data_samples']:
            raise UserError(f'{config_file}: {key}: has no masks; expected labelled images')
        scores, labels = score_maps(model, item, seed)
        truth = _at_size(item['data_samples'].gt_sem_seg.data, labels.shape)
        counted = truth != _IGNORED
        right = (labels == truth)[counted].long()
        for name, size in sizes.items():
            bins = _bin_of(scores[name][counted], name, size)
            counts[name] += (
                torch.bincount(right * size + bins, minlength=2 * size).view(2, -1).numpy()
            )
    if not counts['agreement'].sum():
        raise UserError(f'{config_file}: {key}: no pixel with a class; expected labelled images')

    centres = (np.arange(_CONFIDENCE_BINS) + 0.5) / _CONFIDENCE_BINS
    shares = np.arange(sizes['agreement']) / (sizes['agreement'] - 1)
    fine = {
        name: Reliability(values, counts[name].sum(0), counts[name][1])
        for name, values in (('confidence', centres), ('agreement', shares))
    }
    shown = dict(
        confidence=fine['confidence'].merged(_SHOWN_BINS),
        agreement=fine['agreement'].merged(sizes['agreement']),
    )
    separation = {name: each.separation for name, each in fine.items()}
    write_atomic(Path(out, FIGURE), png_bytes(plot_reliability(shown, separation)))
    content: dict[str, Any] = dict(images=len(dataset))
    for name, each in shown.items():
        content[name] = dict(
            separation=None if np.isnan(separation[name]) else separation[name],
            calibration_error=each.calibration_error,
            scores=each.scores.tolist(),
            pixels=each.pixels.tolist(),
            right=each.right.tolist(),
        )
    write_atomic(Path(out, RECORD), json.dumps(content, indent=1).encode() + b'\n')
    return content


@torch.no_grad()
def score_maps(model: Any, item: dict[str, Any], seed: int = 0) -> tuple[dict[str, Tensor], Tensor]:
    """Scores the main decoder's prediction for an image.

    Args:
        model: A `CCTSegmentor` in evaluation mode, with `dataset_meta`.
        item: Output of the test pipeline: `inputs (3, H, W)` and `data_samples`.
        seed: Seed of the perturbations.

    Returns:
        `confidence` and `agreement`, each `(H, W)` in [0, 1], and the predicted class ids `(H, W)`;
        all on the CPU.
    """
    height, width = item['inputs'].shape[-2:]
    batch = model.data_preprocessor(pseudo_collate([item]), training=False)
    for sample in batch['data_samples']:
        sample.set_metainfo(dict(classes=tuple(model.dataset_meta['classes'])))
    z, seg_logits = model.predict_unlabeled(model.extract_feat(batch['inputs']))
    with torch.random.fork_rng([seg_logits.device] if seg_logits.is_cuda else []):
        torch.manual_seed(seed)
        _, flips = model.auxiliary_head.disagreement(z, seg_logits, batch['data_samples'])
    agreement = 1 - flips[:, 0].mean(0)
    if seg_logits.shape[-2:] != agreement.shape:  # a main decoder with a stride of its own
        seg_logits = F.interpolate(seg_logits, agreement.shape, mode='bilinear')
    confidence, labels = seg_logits[0].float().softmax(0).max(0)
    padded = batch['inputs'].shape[-2:]  # right and below
    maps = [
        _at_size(values[None], padded)[:height, :width].cpu()
        for values in (confidence, agreement, labels)
    ]
    return dict(confidence=maps[0], agreement=maps[1]), maps[2]


def plot_reliability(
    reliability: Mapping[str, Reliability], separation: Mapping[str, float]
) -> Figure:
    """Plots the share of right pixels by each score, over bars of the share of the pixels.

    Args:
        reliability: Pixels by score, by its name.
        separation: `Reliability.separation` by the same names, for the titles.

    Returns:
        The figure, a panel a score.
    """
    figure = Figure(figsize=(4 * len(reliability), 4), layout='constrained')
    for axes, (name, each) in zip(
        figure.subplots(1, len(reliability), squeeze=False)[0], reliability.items()
    ):
        axes.bar(each.scores, each.pixels / each.pixels.sum(), 0.02, color='0.8', label='pixels')
        axes.plot([0, 1], [0, 1], color='0.5', linestyle=':', label='calibrated')
        axes.plot(each.scores, each.right / each.pixels, 'o-', markersize=3, label='right')
        axes.set_title(f'right above wrong: {separation[name]:.3f}', fontsize=10)
        axes.set_xlabel(name)
        axes.set_ylabel('share')
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(0, 1.02)
        axes.legend(fontsize=8, loc='upper left')
    return figure


def _build_dataset(config: Config, split: str, where: str) -> Any:
    settings = (config.get(f'{split}_dataloader') or {}).get('dataset')
    if settings is None:
        raise UserError(f'{where}: missing; expected a labelled data set')
    try:
        dataset = DATASETS.build(copy.deepcopy(settings))
        dataset.full_init()
    except OSError as error:
        raise UserError(f'{where}: {error}; expected the data there') from error
    return dataset


def _bin_of(scores: Tensor, name: str, size: int) -> Tensor:
    """Bins of confidences have equal width; an agreement is a multiple of 1/K itself."""
    if name == 'agreement':
        return (scores * (size - 1)).round().long()
    return (scores * size).long().clamp(max=size - 1)


def _at_size(values: Tensor, size: Any) -> Tensor:
    """Resizes values `(1, ·, ·)` by nearest neighbour, `(H, W)` of the same type."""
    resized = F.interpolate(values[None].float(), tuple(size), mode='nearest-exact')
    return resized[0, 0].to(values.dtype)
