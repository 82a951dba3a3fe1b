"""Chooses the images to label next and prepares them for labelling.

Of the images on which the decoders disagree most, it takes those whose features lie far from one
another and from those of the labelled images: the decoders disagree alike on the frames of one
video, and labelling one of them is enough. Labelled, validation and test images are left out.
"""

import csv
import io
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cv2
import numpy as np
from mmengine.dist import get_rank
from mmengine.registry import init_default_scope
from PIL import Image
from tqdm import tqdm

from mmseg_cct.annotations.class_table import TABLE, ClassTable, read_table, write_table
from mmseg_cct.annotations.export import export_masks
from mmseg_cct.annotations.importer import PREDICTED, ImportOptions, import_masks
from mmseg_cct.apis.predictor import Predictor, SegmentsImages
from mmseg_cct.apis.run import Run
from mmseg_cct.config.shipped import free_round, next_round
from mmseg_cct.datasets.files.images import as_rgb, write_png
from mmseg_cct.datasets.files.labels import IGNORE_INDEX, is_background
from mmseg_cct.datasets.files.leaks import common_images
from mmseg_cct.datasets.leaves import data_folders
from mmseg_cct.engine.visualization import full_palette
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_text
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.output_folder import OutputFolder
from mmseg_cct.utils.text import command_line, counted

from .listed_images import Listed, images_in, images_of
from .ranking import ScoredImage, disagreement, image_pipeline, load_training_model, rank_images
from .review import LARGEST, PageImage, image_page, label_layer, label_legend, shrink

# The record of how the scores in a folder were made, and the page, which is written last.
RECORD, REVIEW = 'ranking.json', 'review.html'
# The batch is chosen from this many times its number of images, those that disagree most.
_POOL = 5


@dataclass(frozen=True)
class BatchRequest:
    """The options of `mmseg-cct next-batch`, which explains them."""

    out: str
    images: str | None = None
    without: Sequence[str] = ()
    number: int = 10
    format: str = 'masks'
    device: str | None = None
    seed: int = 0


@dataclass
class Batch:
    """A batch that was written."""

    images: Sequence[PageImage]  # in the order in which to label them
    note: str  # what they were chosen from
    failed: list[str]  # a line for each unreadable image
    following: list[str]  # commands that bring the corrected batch into the training
    table: ClassTable | None = None  # of its masks


@contextmanager
def batch_folder(
    out: Path, inputs: Iterable[str | Path], made_with: Mapping[str, Any]
) -> Iterator[None]:
    """Enters the folder of a batch, as an `OutputFolder`.

    A finished batch is an error: its masks may hold a person's corrections.
    """
    with OutputFolder(out, RECORD, inputs, made_with):
        if Path(out, REVIEW).exists():
            raise UserError('--out', f'{out} holds a batch already', 'another folder')
        yield


def next_batch(run: Run, request: BatchRequest) -> Batch:
    """Scores images, chooses a batch and writes it.

    Each score is kept as soon as it is known: a second run computes only missing ones. Connected
    processes share the images; all but the first return an empty batch.

    Raises:
        UserError: If the training has no auxiliary decoders, no image is left, or the folder holds
            a batch or something else.
    """
    out = Path(request.out)
    init_default_scope(run.config.get('default_scope') or 'mmseg')  # wrappers of sets need it
    model = load_training_model(run, request.device)
    labeled = images_of(run, 'train_dataloader.dataset.labeled')
    candidates, left_out = _candidates(run, request, labeled)
    inputs = {*data_folders(run.config), *([Path(request.images)] if request.images else [])}
    with batch_folder(out, inputs, {**run.digest, 'seed': request.seed}):
        note = counted(len(candidates), 'candidate')
        if get_rank() == 0 and labeled:  # to choose images that are unlike them
            print(f'scoring {note} and {counted(len(labeled), "labelled image")}', flush=True)
        ranking = rank_images(model, {**labeled, **candidates}, out, seed=request.seed)
        if get_rank() != 0:  # scoring is what takes time; a batch is small
            return Batch([], '', [], [])
        ranked = [image for image in ranking.images if image.name in candidates]
        known = [image for image in ranking.images if image.name in labeled]
        names = [f'{number} {reason}' for reason, number in left_out.items() if number]
        note += f'; left out: {", ".join(names)}' if names else ''
        pipeline = image_pipeline(model.cfg)

        def doubt_of(image: ScoredImage) -> tuple[np.ndarray, str]:
            data = pipeline(dict(candidates[image.name]))
            doubt = disagreement(model, data, request.seed).maps.mean(0).numpy()
            return doubt, f'the decoders disagree on {image.score:.3g} of the pixels'

        caption = 'disagreement of the decoders'
        chosen = choose(ranked, known, request.number)
        batch = write_batch(
            request, ranked, chosen, candidates, Predictor(model), doubt_of, caption, note
        )
    batch.failed = ranking.failed
    batch.following = _following(request, run, batch.table) if batch.table else []
    return batch


def _candidates(run: Run, request: BatchRequest, labeled: Listed) -> tuple[Listed, dict[str, int]]:
    """Lists the images that a batch may be chosen from, and counts those left out by reason."""
    if request.images is not None:
        listed = images_in(request.images)
    elif not (listed := images_of(run, 'train_dataloader.dataset.unlabeled')):
        raise UserError(run.name, 'has no unlabelled images', '--images DIR')
    evaluated = [images_of(run, f'{part}_dataloader.dataset') for part in ('val', 'test')]
    exclusions = {
        'labelled': labeled,
        'of the validation and test sets': {**evaluated[0], **evaluated[1]},
        'of the folders to leave out': {
            name: info for folder in request.without for name, info in images_in(folder).items()
        },
    }
    # the same file, a link to it or a copy: a labelled image often lies among the candidates, too
    left_out = {}
    for reason, images in exclusions.items():
        left_out[reason] = {str(name) for _, name in common_images(images, listed)}
    known = set().union(*left_out.values())
    candidates = {name: info for name, info in listed.items() if name not in known}
    if not candidates:
        raise UserError(request.images or run.name, 'no candidates left')
    maps = [info.get('label_map') or {} for info in labeled.values()]
    pairs = [pair for label_map in maps for pair in label_map.items()]
    reduces = any(info.get('reduce_zero_label') for info in labeled.values())
    if reduces or any(label not in (raw, IGNORE_INDEX) for raw, label in pairs):
        moved = 'reduce_zero_label or label_map moves the ids in the masks of its labelled set'
        batch = 'the masks of the batch hold class ids from 0'
        warn(f'{run.name}: {moved}; {batch}, to be moved back before they join that set')
    return candidates, {reason: len(names) for reason, names in left_out.items()}


def choose(ranked: list[ScoredImage], labeled: list[ScoredImage], number: int) -> list[ScoredImage]:
    """Chooses images from the top of a ranking, far from each other and from labelled ones.

    Each is the farthest from all before it (Gonzalez 1985; for labelling:
    https://arxiv.org/abs/1708.00489).
    """
    pool = ranked[: _POOL * number]
    points = np.array([image.z for image in pool])
    nearest = np.full(len(pool), np.inf)
    # a batch like the labelled images would teach what is known
    for image in labeled if pool else ():
        nearest = np.minimum(nearest, np.linalg.norm(points - image.z, axis=1))
    chosen: list[ScoredImage] = []
    for _ in range(min(number, len(pool))):
        farthest = int(nearest.argmax())
        chosen.append(pool[farthest])
        nearest = np.minimum(nearest, np.linalg.norm(points - points[farthest], axis=1))
        nearest[farthest] = -1.0  # below 0, the distance of a copy
    return chosen


def write_batch(
    request: BatchRequest,
    ranked: Sequence[ScoredImage],
    chosen: Sequence[ScoredImage],
    listed: Listed,
    predictor: SegmentsImages,
    doubt_of: Callable[[ScoredImage], tuple[np.ndarray, str]],
    caption: str,
    note: str,
) -> Batch:
    """Writes the chosen images and what is predicted for them, the ranking, and the page.

    `doubt_of` gives the doubt about an image, `(h, w)`, and says in words how large it is.
    """
    out = Path(request.out)
    for part in ('images', 'masks', PREDICTED):  # of a run that was stopped and chose others
        shutil.rmtree(out / part, ignore_errors=True)
    batch = []
    for image in tqdm(chosen, desc='batch', unit='image'):
        doubt, detail = doubt_of(image)
        detail = f'rank {ranked.index(image) + 1}: {detail}'
        batch.append(_predicted_image(request, listed[image.name], predictor, doubt, detail))
    write_text(out / 'ranking.csv', _ranking_text(ranked, chosen))
    note = f'{len(batch)} of {note}'
    if not batch:
        return Batch([], note, [], [])
    table = _write_annotations(request, batch, predictor.meta)
    # the page is what tells a finished batch
    title = f'Label next: {counted(len(batch), "image")}'
    write_text(out / REVIEW, image_page(title, note, batch, caption))
    return Batch(batch, note, [], [], table)


def _predicted_image(
    request: BatchRequest,
    info: Mapping[str, Any],
    predictor: SegmentsImages,
    doubt: np.ndarray,
    detail: str,
) -> PageImage:
    photo = Path(request.out, 'images', info['name'])
    photo.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(info['img_path'], photo)
    (segmented,) = predictor([info['img_path']])
    picture, labels = segmented.image, segmented.labels
    classes, palette = predictor.meta['classes'], predictor.meta['palette']
    mask = Path(request.out, 'masks', info['name']).with_suffix('.png')
    write_png(mask, Image.fromarray(labels), full_palette(palette))
    labels = shrink(labels, LARGEST, cv2.INTER_NEAREST)
    return PageImage(
        name=info['name'],
        size=(picture.shape[1], picture.shape[0]),
        photo=shrink(as_rgb(picture), LARGEST),
        detail=detail,
        layers=[label_layer('prediction', labels, classes, palette)],
        legend=label_legend(labels, classes, palette),
        doubt=doubt,
    )


def _write_annotations(
    request: BatchRequest, batch: Sequence[PageImage], meta: Mapping[str, Any]
) -> ClassTable:
    """Writes the predicted masks for an annotation tool, and the table of their classes."""
    out = Path(request.out)
    colors = {name: tuple(color) for name, color in zip(meta['classes'], meta['palette'])}
    # what the export leaves undrawn
    table = ClassTable(colors, 'background' if any(map(is_background, colors)) else 'ignore')
    write_table(out, table)
    if request.format != 'masks':
        masks = {str(image.name): out / 'masks' / image.name.with_suffix('.png') for image in batch}
        export_masks(request.format, out, masks, colors, out / 'images')
        _write_untouched(out, min(out.glob(f'{request.format.replace("-", "_")}*')), table)
    else:
        shutil.copytree(out / 'masks', out / PREDICTED)
    return table


def _write_untouched(out: Path, source: Path, table: ClassTable) -> None:
    """Writes the masks that an export gives which nobody touched: outlines are simpler than ids."""
    with TemporaryDirectory(dir=out) as folder:
        write_table(folder, table)
        if source.suffix == '.json':  # Label Studio makes annotations of predictions
            text = source.read_text('utf-8').replace('"predictions": [', '"annotations": [')
            source = Path(folder, source.name)
            source.write_text(text, 'utf-8')
        import_masks(source, folder, ImportOptions(images=out / 'images'))
        Path(folder, 'masks').mkdir(exist_ok=True)  # missing where nothing but background is
        shutil.move(Path(folder, 'masks'), out / PREDICTED)


def _following(request: BatchRequest, run: Run, table: ClassTable) -> list[str]:
    """Returns the commands that bring the corrected batch into the training."""
    labeled = run.config.train_dataloader.dataset.labeled
    masks = Path(labeled.get('data_root') or '', labeled.get('mask_dir') or 'DATA/masks')
    # the importer writes to `masks` of a data folder
    lines = import_commands(request, masks.parent if masks.name == 'masks' else Path('DATA'), table)
    following = free_round(next_round(run.folder))
    runs = f'before={run.folder}', f'after={following}', *run.domain_option
    report = command_line('report', *runs, '--out', following / 'report')
    return [*lines, command_line('train', run.config.filename, '--work-dir', following), report]


def import_commands(request: BatchRequest, data: Path, table: ClassTable) -> list[str]:
    """Returns the commands that bring the corrected batch into a data folder."""
    out = Path(request.out)
    corrected, options = 'CORRECTED', ['--batch', str(out)]
    if request.images:
        options += ['--images', request.images]
    table_of_data = read_table(data)
    copy_names = shlex.join(['cp', str(out / TABLE), str(data)])  # of the ids
    lines = [] if table_of_data else [copy_names]
    if table_of_data is not None and table_of_data.undrawn is None:
        options += ['--rest', str(table.undrawn)]
    if request.format == 'masks':  # an editor may have changed their palettes
        colors = (','.join(map(str, color)) for color in table.colors.values())
        pairs = map('='.join, zip(table.colors, colors))
        corrected, options = str(out / 'masks'), [*options, '--colors', *pairs]
    return [*lines, command_line('import_masks', corrected, '--out', data, *options)]


def _ranking_text(ranked: Sequence[ScoredImage], chosen: Sequence[ScoredImage]) -> str:
    """Writes all images by descending score, as CSV."""
    positions = {image.name: number for number, image in enumerate(chosen, 1)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    perturbations = list(ranked[0].by_perturbation) if ranked else []
    writer.writerow(['rank', 'file', 'score', *perturbations, 'position in the batch'])
    for rank, image in enumerate(ranked, 1):
        values = (f'{value:.6g}' for value in (image.score, *image.by_perturbation.values()))
        writer.writerow([rank, image.name, *values, positions.get(image.name, '')])
    return text.getvalue()
