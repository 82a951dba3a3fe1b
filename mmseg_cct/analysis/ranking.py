"""Ranks unlabelled images for annotation by the disagreement of the decoders.

The auxiliary decoders learn to agree with the main one under perturbations, so where they still
disagree the prediction is fragile. The score is a mean over pixels and decoders, in evaluation mode
and with the same random draws for every image, so it does not depend on the order of images. There
are two measures: `labels`, the share of pixels with another predicted class, and `distance`, that
of L_u (Eq. 2). The distance shrinks where predictions are flat, which is where they are often
wrong, so `labels` is the default.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import cv2
import numpy as np
from matplotlib.figure import Figure
from mmcv.transforms import Compose
from mmengine.config import Config
from mmengine.dist import get_rank
from mmseg.registry import DATASETS
from torch import Tensor

from mmseg_cct.apis.inference import load_model, model_origin, warn_of_other_files
from mmseg_cct.checks.failures import config_errors_as_one_line, first_image_guards
from mmseg_cct.checks.weights import weights
from mmseg_cct.config.domains import require_one_domain
from mmseg_cct.config.load import load_config
from mmseg_cct.datasets.data_folders import data_folders
from mmseg_cct.datasets.semi_supervised import branch_settings
from mmseg_cct.engine.checkpoints import read_checkpoint, require_checkpoint
from mmseg_cct.errors import UserError
from mmseg_cct.evaluation.disagreement import auxiliary_disagreement, batch_of_one
from mmseg_cct.models import PerturbedDecoderBank
from mmseg_cct.utils.files import write_atomic, write_text
from mmseg_cct.utils.image_files import find_images
from mmseg_cct.utils.image_lists import resolve_list
from mmseg_cct.utils.image_record import file_stamp, record_origin
from mmseg_cct.utils.shares import gather, on_first_process, own_share, progress_bar
from mmseg_cct.utils.text import one_line
from mmseg_cct.visualization.figures import legend_below, png_bytes
from mmseg_cct.visualization.label_maps import class_legend, paint

# What the scores of a folder were made with, and a file of scores for each process.
RECORD, SCORES = 'ranking.json', 'scores'
_THUMBNAIL = 320  # longer side of a picture on the contact sheet, in pixels
_COLUMN_WIDTH = 3.2  # inches


@dataclass(order=True)
class RankedImage:
    """An image with the disagreement of its predictions.

    Attributes:
        score: Mean disagreement over decoders and pixels.
        name: Path, or index in the data set.
        by_perturbation: Mean disagreement of each perturbation's decoders.
        stamp: Size and mtime of its file, which change when it is replaced.
        pictures: Image (RGB), coloured prediction and disagreement map for the contact sheet.
    """

    score: float
    name: str
    by_perturbation: dict[str, float] = field(compare=False)
    stamp: list[int] | None = field(default=None, compare=False)
    pictures: tuple[np.ndarray, ...] = field(default=(), compare=False, repr=False)


@dataclass
class Ranking:
    """Images by descending score, and a line for each unreadable one."""

    images: list[RankedImage]
    failed: list[str]


def rank_images(
    config_file: str,
    checkpoint: str,
    out: str,
    *,
    images: str | None = None,
    options: dict[str, Any] | None = None,
    device: str | None = None,
    seed: int = 0,
    top: int = 12,
    measure: str = 'labels',
) -> Ranking:
    """Ranks images and writes `ranking.csv` and `contact_sheet.png`.

    Each score is kept as soon as it is known: a second run computes what is missing, and scores
    images that have changed anew. Connected processes share the images. A `UserError` names a
    missing file or a model without auxiliary decoders.

    `images` is a folder, searched with its subfolders; None takes the config's unlabelled set.
    `top` is the number of images on the contact sheet, and `measure` 'labels' or 'distance'.
    """
    config = load_config(config_file, options or {})
    require_one_domain(config, config_file)
    require_checkpoint(checkpoint)
    listed = dict(_files(images) if images is not None else _unlabeled_set(config, config_file))
    stamps = {name: file_stamp(info.get('img_path') or '') for name, info in listed.items()}
    origin = model_origin(config, checkpoint, measure=measure, seed=seed)
    model = load_training_model(config, checkpoint, device)
    with config_errors_as_one_line(config):
        pipeline = Compose([t for t in config.test_pipeline if t['type'] != 'LoadAnnotations'])

    def finished() -> set[str]:
        read = {Path(images)} if images is not None else set()
        record_origin(Path(out, RECORD), origin, 'scores', read | data_folders(config))
        return {image.name for image in _read_scores(out) if image.stamp == stamps.get(image.name)}

    done = on_first_process(finished) & set(listed)
    share = own_share([name for name in listed if name not in done])
    failed = []
    guards = first_image_guards(config)
    with _open_scores(out) as scores, progress_bar(len(share), len(done)) as bar:
        for name in share:
            try:
                data = pipeline(listed[name])
            except KeyError:  # a transform needs a key that no earlier step provides
                with next(guards):
                    raise
            except Exception as error:  # decoders raise nearly anything on a corrupt file
                failed.append(f'{name}: unreadable image ({one_line(error)})')
            else:
                with next(guards):
                    maps, _ = disagreement(model, data, seed, measure)
                image = RankedImage(
                    float(maps.mean()), name, _by_perturbation(model, maps), stamps[name]
                )
                scores.write(json.dumps(asdict(image)) + '\n')
                scores.flush()
            bar.update()
    failed = sorted(line for part in gather(failed) for line in part)
    # Two runs with other numbers of processes may both have scored an image.
    ranked = sorted(
        {
            image.name: image
            for image in _read_scores(out)
            if image.name in listed and image.stamp == stamps[image.name]
        }.values(),
        reverse=True,
    )
    if get_rank() == 0:
        write_text(Path(out, 'ranking.csv'), _csv(ranked))
        for image in ranked[:top]:
            data = pipeline(listed[image.name])
            maps, labels = disagreement(model, data, seed, measure)
            image.pictures = _pictures(data['inputs'], labels, maps, model.dataset_meta['palette'])
        if ranked:
            meta = model.dataset_meta
            sheet = _contact_sheet(ranked[:top], meta['classes'], meta['palette'])
            write_atomic(Path(out, 'contact_sheet.png'), sheet)
    return Ranking(ranked, failed)


def _open_scores(out: str) -> IO[str]:
    """Opens the file of this process, to which each score is appended at once."""
    file = Path(out, SCORES, f'{get_rank()}.jsonl')
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_file() and not file.read_bytes().endswith(b'\n'):  # a line that a kill cut short
        write_atomic(file, b''.join(file.read_bytes().splitlines(keepends=True)[:-1]))
    return file.open('a', encoding='utf-8')


def _read_scores(out: str) -> Iterator[RankedImage]:
    """Reads the scores that all processes of all runs have written, but for damaged lines."""
    for file in sorted(Path(out, SCORES).glob('*.jsonl')):
        for line in file.read_text(encoding='utf-8', errors='replace').split('\n'):
            with suppress(ValueError, TypeError, AttributeError, RecursionError):
                image = RankedImage(**{**json.loads(line), 'pictures': ()})
                numbers = (image.score, *image.by_perturbation.values())
                if type(image.name) is str and all(type(each) is float for each in numbers):
                    yield image


def disagreement(
    model: Any, data: dict[str, Any], seed: int = 0, measure: str = 'labels'
) -> tuple[Tensor, Tensor]:
    """Compares the auxiliary predictions for an image with the main one, by 'labels' or 'distance'.

    `data` is an output of the test pipeline, with `inputs (3, H, W)`. Returns the disagreement of
    each auxiliary decoder `(K, H, W)` and class ids of the main prediction `(H, W)`, both on the
    CPU.
    """
    if 'inputs' not in data:
        raise UserError('test_pipeline: gives no inputs; expected PackSegInputs at its end')
    height, width = data['inputs'].shape[-2:]
    batch = batch_of_one(model, data, model.dataset_meta['classes'])
    seg_logits, distances, flips = auxiliary_disagreement(model, batch, seed)
    maps = dict(labels=flips, distance=distances)[measure]
    # The preprocessor pads right and below.
    return (maps[:, 0, :height, :width].cpu(), seg_logits[0].argmax(0)[:height, :width].cpu())


def load_training_model(config: Config, checkpoint: str, device: str | None = None) -> Any:
    """Builds a model in evaluation mode with its auxiliary decoders.

    A `UserError` says if the config or the checkpoint has none, or if they do not fit.
    """
    content = read_checkpoint(checkpoint)
    model = load_model(config, checkpoint, device, content=content)
    require_auxiliary_decoders(model, content, checkpoint)
    return model


def require_auxiliary_decoders(model: Any, content: Mapping[str, Any], checkpoint: str) -> None:
    """Checks that a model has auxiliary decoders, and a checkpoint weights that fit them.

    `load_model` is lenient about them.
    """
    bank = getattr(model, 'auxiliary_head', None)
    if not isinstance(bank, PerturbedDecoderBank):
        raise UserError(
            f'{model.cfg.filename}: model.auxiliary_head is no PerturbedDecoderBank; expected '
            'the config of a CCT training'
        )
    found = {name: tuple(value.shape) for name, value in weights(content).items()}
    for name, value in bank.state_dict().items():
        shape = found.get(f'auxiliary_head.{name}')
        if shape is None:
            raise UserError(
                f'{checkpoint}: has no auxiliary decoders, as published checkpoints; '
                'expected the checkpoint of the training'
            )
        if shape != value.shape:
            raise UserError(
                f'{checkpoint}: auxiliary_head.{name} is {shape}, expected '
                f'{tuple(value.shape)} by {model.cfg.filename}'
            )


def _files(folder: str) -> list[tuple[str, dict]]:
    found = find_images(folder).values()
    if get_rank() == 0:
        warn_of_other_files(folder, found)
    return [
        (str(path), dict(img_path=str(path), seg_fields=[], reduce_zero_label=False))
        for path in found
    ]


def _unlabeled_set(config: Config, config_file: str) -> list[tuple[str, dict]]:
    """Lists name and data info of each image in the config's unlabelled set."""
    dataset = config.get('train_dataloader', {}).get('dataset', {})
    settings = branch_settings(dataset, 'unlabeled')
    if settings is None:
        raise UserError(
            f'{config_file}: no train_dataloader.dataset.unlabeled; expected one, or --images DIR'
        )
    settings = {**settings, 'pipeline': []}
    if settings.get('ann_file'):
        settings['ann_file'] = resolve_list(settings['ann_file'])
    try:
        dataset = DATASETS.build(settings)
        dataset.full_init()
    except (AssertionError, OSError, ValueError) as error:
        raise UserError(f'{config_file}: train_dataloader.dataset.unlabeled: {error}') from error
    return list(_infos(dataset))


def _infos(dataset: Any) -> Iterator[tuple[str, dict]]:
    for index in range(len(dataset)):
        info = dataset.get_data_info(index)
        info.pop('seg_map_path', None)  # images alone are read
        yield info.get('img_path') or str(index), info


def _by_perturbation(model: Any, maps: Tensor) -> dict[str, float]:
    perturbations = {
        name: item.num_decoders
        for name, item in model.auxiliary_head.perturbations.items()
        if item.num_decoders
    }
    parts = maps.mean((1, 2)).split(list(perturbations.values()))
    return {name: float(part.mean()) for name, part in zip(perturbations, parts)}


def _csv(ranked: list[RankedImage]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(['rank', 'file', 'score', *(ranked[0].by_perturbation if ranked else ())])
    for rank, image in enumerate(ranked, 1):
        values = (image.score, *image.by_perturbation.values())
        writer.writerow([rank, image.name, *(f'{value:.6g}' for value in values)])
    return text.getvalue()


def _pictures(inputs: Tensor, labels: Tensor, maps: Tensor, palette: list) -> tuple:
    """Shrinks image, prediction and mean disagreement to thumbnails."""
    image = inputs.permute(1, 2, 0).numpy()[..., ::-1].astype(np.uint8)  # MMSeg loads BGR
    height, width = image.shape[:2]
    scale = min(1.0, _THUMBNAIL / max(height, width))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    colours = paint(labels.numpy(), palette)
    return (
        cv2.resize(image, size, interpolation=cv2.INTER_AREA),
        cv2.resize(colours, size, interpolation=cv2.INTER_NEAREST),
        cv2.resize(maps.mean(0).numpy(), size, interpolation=cv2.INTER_AREA),
    )


def _contact_sheet(
    ranked: list[RankedImage], classes: Sequence[str], palette: Sequence[Sequence[int]]
) -> bytes:
    """Plots image, main prediction and disagreement in a row each, with one scale of all maps."""
    height, width = ranked[0].pictures[0].shape[:2]
    row_height = _COLUMN_WIDTH * height / width + 0.3
    figure = Figure(figsize=(3 * _COLUMN_WIDTH, row_height * len(ranked) + 1.0), dpi=100)
    figure.set_layout_engine('constrained', w_pad=0.03, h_pad=0.03, wspace=0, hspace=0)
    axes = figure.subplots(len(ranked), 3, squeeze=False)
    highest = max(float(np.quantile(image.pictures[2], 0.99)) for image in ranked) or 1.0
    for rank, (row, image) in enumerate(zip(axes, ranked), 1):
        photo, colours, mean_map = image.pictures
        row[0].imshow(photo)
        row[1].imshow(colours)
        shown = row[2].imshow(mean_map, cmap='magma', vmin=0, vmax=highest)
        row[0].set_title(f'{rank}. {_tail(image.name)}', fontsize=8, loc='left')
        row[1].set_title('main prediction', fontsize=8, loc='left')
        row[2].set_title(f'disagreement, mean {image.score:.3g}', fontsize=8, loc='left')
        for axis in row:
            axis.set_axis_off()
    figure.colorbar(
        shown, ax=axes, location='top', aspect=60, shrink=0.6, label='disagreement, all rows'
    )
    legend_below(figure, class_legend(classes, palette))
    return png_bytes(figure)


def _tail(name: str, length: int = 34) -> str:
    return name if len(name) <= length else f'…{name[-length + 1 :]}'
