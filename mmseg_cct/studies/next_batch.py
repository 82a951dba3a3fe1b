"""Chooses the images to label next and prepares them for labelling.

Of the images on which the decoders disagree most, it takes those whose features lie far from one
another and from those of the labelled images: the decoders disagree alike on the frames of one
video, and labelling one of them is enough. Labelled, validation and test images are left out.
"""

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from mmcv.transforms import Compose
from mmengine import fileio
from mmengine.config import Config
from mmengine.dist import get_rank
from mmengine.registry import init_default_scope
from PIL import Image
from tqdm import tqdm

from mmseg_cct.annotations.export import export_masks
from mmseg_cct.apis.predictor import Predictor
from mmseg_cct.apis.run import Run
from mmseg_cct.config.domains import require_one_domain
from mmseg_cct.datasets.files.images import as_rgb, explain_unreadable, write_png
from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.datasets.leaves import data_folders
from mmseg_cct.engine.visualization.label_maps import full_palette
from mmseg_cct.errors import UserError
from mmseg_cct.studies.farthest_first import farthest_first
from mmseg_cct.utils.files import write_atomic, write_text
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.output_folder import OutputFolder
from mmseg_cct.utils.text import counted

from .fingerprints import find_twins, fingerprint
from .listed_images import (
    Listed,
    evaluated_images,
    images_in,
    labeled_images,
    same_images,
    unlabeled_images,
)
from .ranking import (
    Ranking,
    ScoredImage,
    disagreement,
    image_pipeline,
    load_training_model,
    rank_images,
    to_rgb,
)
from .review import BatchImage, review_page, shrink
from .windows import Window, highest_windows, keep_windows

# The record of how the scores in a folder were made, and the page, which is written last.
RECORD, REVIEW = 'ranking.json', 'review.html'
# The batch is chosen from this many times its number of images, those that disagree most.
_POOL = 5
LARGEST = 1280  # longer side of a picture in the page, in pixels


@dataclass(frozen=True)
class BatchRequest:
    """The options of `tools/next_batch.py`, which explains them."""

    run: str
    out: str
    images: str | None = None
    without: Sequence[str] = ()
    number: int = 10
    format: str = 'masks'
    regions: int = 0
    window: int | None = None
    link: bool = False
    cfg_options: Mapping[str, Any] = field(default_factory=dict)
    device: str | None = None
    seed: int = 0


@dataclass
class Batch:
    """A batch that was written."""

    images: list[BatchImage]  # in the order in which to label them
    candidates: int  # number of images that they were chosen from
    left_out: dict[str, int]  # number of images that were no candidates, by reason
    twins: dict[str, str]  # validation or test image that a candidate looks like, by its path
    failed: list[str]  # a line for each unreadable image

    def notes(self) -> list[str]:
        """Says what the images were chosen from and what was left out, a line each."""
        known = ', '.join(f'{count} {kind}' for kind, count in self.left_out.items() if count)
        lines = [f'{len(self.images)} of {counted(self.candidates, "image")}']
        if known:
            lines[0] += f'; left out: {known}'
        if self.twins:
            twin, other = next(iter(self.twins.items()))
            lines.append(
                f'{len(self.twins)} of the {self.candidates} look like validation or test images '
                f'and were left out, because their labels would leak into the result: {twin} like '
                f'{other}'
            )
        return lines


def next_batch(request: BatchRequest) -> Batch:
    """Scores images, chooses a batch and writes it.

    Each score is kept as soon as it is known: a second run computes only missing ones. Connected
    processes share the images; all but the first return an empty batch.

    Raises:
        UserError: If the training is missing or has no auxiliary decoders, no image is left, or the
            folder holds a batch or something else.
    """
    run, out, images = request.run, Path(request.out), request.images
    found = Run.open(run, options=request.cfg_options)
    config = found.config
    require_one_domain(config, run)
    init_default_scope(config.get('default_scope') or 'mmseg')  # wrappers of sets need it
    sets = _list_images(config, request)
    model = load_training_model(found, request.device)
    origin = found.origin(seed=request.seed)
    inputs = {*data_folders(config), *([images] if images is not None else ())}
    with OutputFolder(out, RECORD, inputs, origin):
        if Path(out, REVIEW).exists():
            raise UserError('--out', f'{out} holds a batch already', 'another folder')
        ranking = rank_images(model, {**sets.labeled, **sets.candidates}, out, seed=request.seed)
        if get_rank() != 0:
            return Batch([], 0, {}, {}, [])
        return _write_batch(request, model, sets, ranking)


def _write_batch(request: BatchRequest, model: Any, sets: '_Sets', ranking: Ranking) -> Batch:
    """Chooses the images of a batch and writes them; the page comes last."""
    out = Path(request.out)
    pipeline, classes = image_pipeline(model.cfg), model.dataset_meta['classes']
    palette = model.dataset_meta['palette']
    # Choose: by rank, without near-duplicates of what the result is measured on.
    ranked = [image for image in ranking.images if image.name in sets.candidates]
    prints, unreadable = _fingerprints(sets.evaluated, pipeline)
    twins = find_twins({image.name: image.fingerprint for image in ranked}, prints)
    chosen = choose(
        [image for image in ranked if image.name not in twins],
        [image for image in ranking.images if image.name in sets.labeled],
        request.number,
    )
    ranks = {image.name: rank for rank, image in enumerate(ranked, 1)}
    predictor = Predictor(model)
    batch = []
    for info in sets.candidates.values():  # a run that was stopped may have chosen others
        for left in _places(out, info):
            left.unlink(missing_ok=True)
    # Predict, with pictures small enough for the page.
    for image in tqdm(chosen, desc='batch', unit='image'):
        info = sets.candidates[image.name]
        photo, mask = _places(out, info)
        _put_image(info, photo, request.link, pipeline)
        (segmented,) = predictor([photo])
        picture, labels = segmented.image, segmented.labels
        values = disagreement(model, pipeline(info), request.seed).maps.mean(0).numpy()
        windows = _windows(values, picture.shape, request.regions, request.window)
        labels = keep_windows(labels, windows)
        write_png(mask, Image.fromarray(labels), full_palette(palette))
        batch.append(
            BatchImage(
                name=info['name'],
                rank=ranks[image.name],
                score=image.score,
                photo=shrink(as_rgb(picture), LARGEST),
                labels=shrink(labels, LARGEST, cv2.INTER_NEAREST),
                disagreement=values,
                size=(picture.shape[1], picture.shape[0]),
                windows=windows,
            )
        )
    # Write; the page is what tells a finished batch.
    places = {image.name: number for number, image in enumerate(chosen, 1)}
    write_text(out / 'ranking.csv', _csv(ranked, places, twins))
    result = Batch(batch, len(ranked), sets.left_out, twins, ranking.failed + unreadable)
    if request.format != 'masks':
        _write_annotations(request.format, out, batch, dict(zip(classes, palette)))
    if batch:
        page = review_page(batch, result.notes(), len(ranked), classes, palette)
        write_text(out / REVIEW, page)
    return result


def _places(out: Path, info: Mapping[str, Any]) -> tuple[Path, Path]:
    """Returns where a batch has an image, and the mask of its prediction."""
    return out / 'images' / info['name'], out / 'masks' / info['name'].with_suffix('.png')


class _Sets(NamedTuple):
    """The images that a batch may be chosen from, and how many may not be, by reason."""

    candidates: Listed
    labeled: Listed
    evaluated: Listed
    left_out: dict[str, int]


def _list_images(config: Config, request: BatchRequest) -> _Sets:
    run, images = request.run, request.images
    listed = unlabeled_images(config, run) if images is None else images_in(images)
    labeled, evaluated = labeled_images(config, run), evaluated_images(config, run)
    earlier: Listed = {}
    for folder in request.without:
        earlier |= images_in(folder)
    left_out = {
        'labelled': same_images(listed, labeled),
        'of the validation and test sets': same_images(listed, evaluated),
        'of the folders to leave out': same_images(listed, earlier),
    }
    known = set().union(*left_out.values())
    candidates = {name: info for name, info in listed.items() if name not in known}
    if not candidates:
        found = f'each of the {len(listed)} images is labelled, validated on or to be left out'
        raise UserError(images or run, found, 'others')
    if any(map(_is_moved, labeled.values())):
        warn(
            f'{run}: reduce_zero_label or label_map moves the ids in the masks of its labelled '
            'set; the masks of the batch hold class ids from 0, to be moved back before they join '
            'that set'
        )
    counts = {reason: len(names) for reason, names in left_out.items()}
    return _Sets(candidates, labeled, evaluated, counts)


def _write_annotations(
    form: str, out: Path, batch: Sequence[BatchImage], classes: Mapping[str, Any]
) -> None:
    """Writes the predicted masks for an annotation tool."""
    masks = {str(image.name): out / 'masks' / image.name.with_suffix('.png') for image in batch}
    colours = {name: tuple(colour) for name, colour in classes.items()}
    in_windows = any(image.windows for image in batch)  # what is not drawn is ignored then
    export_masks(form, out, masks, colours, out / 'images', background=in_windows)


def choose(
    ranked: Sequence[ScoredImage], labeled: Sequence[ScoredImage], number: int
) -> list[ScoredImage]:
    """Chooses images from the top of a ranking, far from each other and from labelled ones."""
    pool = ranked[: _POOL * number]
    if not pool:
        return []
    given = np.array([image.z for image in labeled]) if labeled else None
    return [pool[i] for i in farthest_first(np.array([image.z for image in pool]), number, given)]


def _fingerprints(images: Listed, pipeline: Compose) -> tuple[dict[str, str], list[str]]:
    """Returns fingerprints of images by name, and a line for each unreadable one."""
    prints, failed = {}, []
    for name, info in tqdm(images.items(), desc='validation images', unit='image'):
        try:
            prints[name] = fingerprint(to_rgb(pipeline(info)))
        except Exception as error:  # decoders raise nearly anything on a corrupt file
            failed.append(explain_unreadable(name, 'image', error))
    return prints, failed


def _is_moved(info: Mapping[str, Any]) -> bool:
    """Tells whether a class has another id in the mask of a labelled image."""
    moves = (info.get('label_map') or {}).items()
    is_moved = any(label not in (raw, IGNORE_INDEX) for raw, label in moves)
    return is_moved or info.get('reduce_zero_label', False)


def _put_image(info: dict[str, Any], target: Path, link: bool, pipeline: Compose) -> None:
    """Copies or links an image into the batch."""
    source = info.get('img_path')
    if source is None:  # a set that draws its images
        write_png(target, Image.fromarray(to_rgb(pipeline(info))))
    elif link and os.path.isfile(source):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(os.path.abspath(source))
    else:
        write_atomic(target, fileio.get(source))


def _windows(
    values: np.ndarray, shape: Sequence[int], number: int, side: int | None
) -> list[Window]:
    """Finds the highest windows of a map of any size, in pixels of an image of this shape."""
    if not number:
        return []
    height, width = shape[:2]
    resized = cv2.resize(values, (width, height), interpolation=cv2.INTER_LINEAR)
    return highest_windows(resized, number, side or max(min(height, width) // 4, 1))


def _csv(ranked: Sequence[ScoredImage], places: Mapping[str, int], twins: Mapping[str, str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    perturbations = list(ranked[0].by_perturbation) if ranked else []
    writer.writerow(
        ['rank', 'file', 'score', *perturbations, 'position in the batch', 'near-duplicate']
    )
    for rank, image in enumerate(ranked, 1):
        values = (image.score, *image.by_perturbation.values())
        notes = places.get(image.name, ''), twins.get(image.name, '')
        writer.writerow([rank, image.name, *(f'{value:.6g}' for value in values), *notes])
    return text.getvalue()
