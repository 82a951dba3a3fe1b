"""Resumable prediction for folders of images."""

import csv
import io
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.dist import get_rank
from PIL import Image

from mmseg_cct.annotations.class_table import TABLE, ClassTable, read_table, write_table
from mmseg_cct.annotations.export import export_masks
from mmseg_cct.datasets.files.image_files import describe_left_out, find_images
from mmseg_cct.datasets.files.images import explain_unreadable, read_mask, write_png
from mmseg_cct.datasets.files.palette import chosen_colors
from mmseg_cct.datasets.leaves import data_folders
from mmseg_cct.engine.labels_record import write_labels
from mmseg_cct.engine.visualization import blend, is_tinted, legend_picture
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_text
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.output_folder import OutputFolder, file_stamp
from mmseg_cct.utils.processes import (
    ImageCounts,
    SharedImages,
    ahead,
    on_first_process,
    progress_bar,
)

from .predictor import Predictor, Segmented, SegmentsImages
from .run import Run

__all__ = ['export_predictions', 'predict_images']

# Names the model of the predictions in a folder, so that two models never share one.
RECORD = 'prediction.json'
MASKS, OVERLAYS, CONFIDENCE = 'masks', 'overlays', 'confidence'
MEANS = 'predict.csv'  # mean confidence of each image, the least confident first
_LEGEND_WIDTH = 640  # pixels


def predict_images(
    run: Run,
    images: str,
    out: str,
    *,
    device: str | None = None,
    opacity: float = 0.5,
    palette: str | None = None,
    confidence: bool = False,
) -> ImageCounts:
    """Segments images and writes `masks/NAME.png` and `overlays/NAME.png` for each.

    A mask is a palette PNG of class ids, in the order of the classes that the checkpoint names:
    `classes.json` lists them, and `legend.png` shows their colours. Both files have the size of the
    image, except that an overlay names its classes below the picture. `labels.json` is that of the
    training, on whose images masks are better than elsewhere. Finished images are skipped unless
    they have changed since; unreadable ones are reported and do not stop the run. Connected
    processes share the images.

    Args:
        run: The trained network.
        images: An image, or a folder that is searched with its subfolders.
        out: Folder for the predictions.
        device: Where to compute; by default the GPU of this process, if any.
        opacity: Weight of the class colours in an overlay, in [0, 1].
        palette: A data set of MMSeg or a JSON file with the colours of the classes; by default
            those of the training.
        confidence: Whether to write `confidence/NAME.png` too, the model's probability of the class
            that it predicts, where 255 is 1, and `predict.csv` with the mean of each image.

    Returns:
        Counts of written, skipped and failed images.

    Raises:
        UserError: If a file is missing, the checkpoint does not fit the config, or the folder holds
            predictions of another model.
    """
    options = dict(palette=palette, confidence=confidence)
    origin = {**run.digest, 'opacity': opacity, **{k: v for k, v in options.items() if v}}
    no_images: list[str] = []  # files that are none, on the first process
    image_paths = on_first_process(lambda: _find_images(images, no_images))
    if no_images:
        warn(describe_left_out(images, no_images))
    with OutputFolder(out, RECORD, {images, *data_folders(run.config)}, origin) as folder:
        if run.labels and get_rank() == 0:
            write_labels(out, run.labels)

        def load() -> Predictor:
            model = run.load_model(device)
            if palette is not None:
                classes = model.dataset_meta['classes']
                model.dataset_meta['palette'] = chosen_colors(palette, classes)
            return Predictor(model, confidence)

        stamps = {name: file_stamp(path) for name, path in image_paths.items()}
        return write_predictions(load, image_paths, folder, stamps, opacity)


def write_predictions(
    load: Callable[[], SegmentsImages],
    image_paths: Mapping[str, str],
    folder: OutputFolder,
    stamps: Mapping[str, Any],
    opacity: float,
) -> ImageCounts:
    """Writes what a predictor gives for images, by name, into an entered folder.

    `load` gives the predictor, and is not called if nothing is left to do. Images whose files were
    made from the same of `stamps` are skipped.
    """
    # The overlay is written last, so it stands for all files.
    todo, out = folder.remaining(stamps, OVERLAYS), folder.path
    skipped = len(image_paths) - len(todo)
    counts = ImageCounts(skipped=skipped)
    if todo or not Path(out, TABLE).is_file():
        predictor = load()
        meta = predictor.meta
        if get_rank() == 0:
            colours = {str(name): tuple(c) for name, c in zip(meta['classes'], meta['palette'])}
            write_table(out, ClassTable(colours, None))
            legend = legend_picture(meta['classes'], meta['palette'], _LEGEND_WIDTH)
            write_png(Path(out, 'legend.png'), Image.fromarray(legend))
        share = SharedImages([(name, image_paths[name]) for name in todo], skipped)
        counts = _predict(predictor, share, out, opacity)
    if Path(out, CONFIDENCE).is_dir():  # of all, those of an earlier run too
        on_first_process(lambda: _write_means(out, image_paths))
    return counts


def _predict(
    predictor: SegmentsImages, share: SharedImages[tuple[str, str]], out: Path, opacity: float
) -> ImageCounts:
    """Predicts this process's share of images; returns the counts of all processes."""
    meta = predictor.meta
    palette, tinted = np.array(meta['palette'], np.uint8), is_tinted(meta['classes'])

    def write(named: tuple[str, Segmented]) -> Segmented:
        name, (_, image, labels, confidence, error) = named
        if error is None:
            write_png(out / MASKS / f'{name}.png', Image.fromarray(labels), palette)
            if confidence is not None:
                write_png(out / CONFIDENCE / f'{name}.png', Image.fromarray(confidence))
            blended = blend(image, labels, meta['classes'], meta['palette'], opacity)
            shown = [index for index in np.unique(labels) if tinted[index]]
            names, colours = ([meta[key][i] for i in shown] for key in ('classes', 'palette'))
            legend = legend_picture(names, colours, blended.shape[1])
            picture = Image.fromarray(np.vstack([blended, legend]))
            write_png(out / OVERLAYS / f'{name}.png', picture)
        return named[1]

    with share.bar:
        names = [name for name, _ in share.own]
        segmented = predictor(path for _, path in share.own)
        for done in ahead(write, zip(names, segmented)):
            if done.error is None:
                share.written()
            else:
                share.failed(explain_unreadable(done.path, 'image', done.error))
    return share.total()


def _write_means(out: Path, image_paths: Mapping[str, str]) -> None:
    """Writes the mean confidence of each finished image, the least confident first."""
    names = [name for name in image_paths if (out / OVERLAYS / f'{name}.png').is_file()]
    levels = ahead(lambda name: read_mask(out / CONFIDENCE / f'{name}.png').mean() / 255, names)
    rows = sorted((f'{level:.4f}', image_paths[name]) for name, level in zip(names, levels))
    csv.writer(text := io.StringIO(), lineterminator='\n').writerows([(CONFIDENCE, 'image'), *rows])
    write_text(out / MEANS, text.getvalue())


def export_predictions(
    images: str, out: str, form: str, *, tolerance: float = 1.0, min_area: int = 10
) -> None:
    """Writes the masks that `predict_images` left in `out` as annotations for a labelling tool.

    Args:
        images: The images that were predicted.
        out: The folder of the predictions, which gets the annotations too.
        form: One of `annotations.FORMATS`.
        tolerance: How far outlines may move, in pixels, for fewer points.
        min_area: Regions of fewer pixels are given to their surroundings.

    Raises:
        UserError: The folder holds no predictions, or annotations that somebody has edited.
    """
    table = read_table(out)
    if table is None:
        raise UserError(str(Path(out, TABLE)), 'no such file, so this is no folder of predictions')
    folder = Path(images) if os.path.isdir(images) else Path(images).parent
    masks = {}
    for name, path in _find_images(images).items():
        if Path(out, OVERLAYS, f'{name}.png').is_file():
            masks[Path(path).relative_to(folder).as_posix()] = Path(out, MASKS, f'{name}.png')
    with OutputFolder(out, RECORD, {images}), progress_bar(len(masks), 0) as bar:
        export_masks(
            form, out, masks, table.colors, folder,
            tolerance=tolerance, min_area=min_area, progress=lambda: bar.update(),
        )  # fmt: skip


def _find_images(images: str, no_images: list[str] | None = None) -> dict[str, str]:
    path = Path(images)
    if (path / 'images').is_dir() and (path / MASKS).is_dir():  # the masks are no photos
        raise UserError(images, 'holds images and masks', str(path / 'images'))
    return {path.stem: images} if path.is_file() else find_images(path, left_out=no_images)
