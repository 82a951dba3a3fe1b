"""Chooses the first images to label, from photos alone.

Of seeded draws, each with an image from every even stretch of the names, it takes the one whose
features are distributed most like those of all images: frames of one video are neighbours by name,
and an image unlike all others teaches little when there are few.
"""

import shutil
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from mmseg_cct.annotations.class_table import ClassTable, read_table
from mmseg_cct.annotations.contours import TracedImage
from mmseg_cct.annotations.export import WRITERS, Export
from mmseg_cct.annotations.importer import PREDICTED
from mmseg_cct.datasets.files.labels import BACKGROUND, is_background
from mmseg_cct.datasets.files.leaks import common_images
from mmseg_cct.engine.frozen_features import (
    Encoder,
    encode_all,
    load_encoder,
    points_of,
    read_picture,
)
from mmseg_cct.engine.probe import representative, whitening
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_text
from mmseg_cct.utils.text import command_line, counted, natural_order, one_line

from .listed_images import images_in
from .next_batch import REVIEW, Batch, BatchRequest, batch_folder
from .review import LARGEST, PageImage, image_page, shrink

_MOST = 6000  # images that are looked at, five minutes of a core
# Images that the main directions of the features are found from, and their number.
_SAMPLE, _NUM_FEATURES = 64, 16

Moments = tuple[np.ndarray, np.ndarray]  # mean `(K,)` and second moments `(K, K)` of features


def first_batch(request: BatchRequest, model: Mapping[str, Any]) -> Batch:
    """Chooses a batch from a folder of photos and writes it, for people to draw the masks.

    The backbone of the `model`, a config, will be trained. Without its weights, images with evenly
    spaced names are taken.

    Raises:
        UserError: If no image is left, or the folder holds a batch or something else.
    """
    out, folder = Path(request.out), str(request.images)
    listed = images_in(folder)
    excluded = chain.from_iterable(map(images_in, request.without))
    left_out = {str(path) for _, path in common_images(excluded, listed)}
    names = sorted(listed.keys() - left_out, key=natural_order)
    if not names:
        raise UserError(folder, 'no candidates left')
    table = read_table(Path(folder).parent) if Path(folder).name == 'images' else None
    with batch_folder(out, [folder], dict(images=folder, seed=request.seed)):
        chosen, note, failed = _choose(names, request, model)
        shutil.rmtree(out / 'images', ignore_errors=True)  # of a run that was stopped
        batch: list[PageImage] = []
        for path in chosen:
            try:
                picture = read_picture(path)
            except UserError as error:  # one that was chosen by its name alone
                failed.append(str(error))
                continue
            name, size = listed[path]['name'], (picture.shape[1], picture.shape[0])
            (out / 'images' / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, out / 'images' / name)
            batch.append(PageImage(name, size, shrink(picture, LARGEST)))
        if left_out:
            note += f'; left out: {len(left_out)} of the folders to leave out'
        note = f'{len(batch)} of {note}'
        if batch:
            if request.format != 'masks':
                colors = table.colors if table else {}
                undrawn = (TracedImage(image.name.as_posix(), image.size, []) for image in batch)
                WRITERS[request.format](Export(out, colors, undrawn, out / 'images'))
            (out / PREDICTED).mkdir(exist_ok=True)  # empty: nothing is predicted
            title = f'Label first: {counted(len(batch), "image")}'
            write_text(out / REVIEW, image_page(title, note, batch))
    return Batch(batch, note, failed, _following(request, table))


def _choose(
    names: Sequence[str], request: BatchRequest, model: Mapping[str, Any]
) -> tuple[list[str], str, list[str]]:
    """Chooses images by their features; returns them, of how many, and a line per unreadable one.

    `names` are paths in natural order.
    """
    positions = np.linspace(0, len(names) - 1, min(len(names), _MOST)).astype(int)
    sample, failed = [names[position] for position in positions], list[str]()
    note = counted(len(names), 'image')
    if len(sample) < len(names):
        note = f'{len(sample)} images, a sample of {note} that is even by name'
    try:
        encoder = load_encoder(model, request.device)
    except UserError as error:
        number = min(request.number, len(sample))
        centers = (2 * np.arange(number) + 1) * len(sample) // (2 * number)
        note += f', evenly spaced by name, since {one_line(error)}'
        return [sample[center] for center in centers], note, failed
    moments = _moments(encoder, sample, failed)
    means, seconds = (np.array(column) for column in zip(*moments.values()))
    number = min(request.number, len(moments))
    readable, indices = list(moments), representative(means, seconds, number, request.seed)
    return [readable[index] for index in indices], note, failed


def _moments(encoder: Encoder, names: Sequence[str], failed: list[str]) -> dict[str, Moments]:
    """Finds the moments of each image's features; adds a line to `failed` for an unreadable one."""
    sample = list(points_of(encoder, names[:: -(-len(names) // _SAMPLE)]))
    if not sample:
        raise UserError('--images', f'none of {counted(len(names), "image")} can be read')
    mean, matrix = whitening(np.concatenate(sample), _NUM_FEATURES)
    moments: dict[str, Moments] = {}
    for name, features in zip(names, encode_all(encoder, names, 'features')):
        if isinstance(features, UserError):
            failed.append(str(features))
            continue
        points = (features.reshape(-1, features.shape[-1]) - mean) @ matrix
        moments[name] = points.mean(0), points.T @ points / len(points)
    return moments


def _following(request: BatchRequest, table: ClassTable | None) -> list[str]:
    """Says where masks of ids go, and returns the commands that bring others into a training."""
    folder = Path(str(request.images))
    is_data = folder.name == 'images'  # of a data folder, where the masks go
    data = folder.parent if is_data else Path('DATA')
    photos = '' if is_data else f', all photos to {data / "images"}'
    by_hand = f'# masks of class ids (255: ignored) go to {data / "masks"} as NAME.png{photos}'
    options = ['--batch', str(request.out)]
    options += [] if is_data else ['--images', str(folder)]
    if table is None or table.undrawn is None:
        names = table.colors if table else (BACKGROUND,)  # a new table gets it
        options += ['--rest', BACKGROUND if any(map(is_background, names)) else 'ignore']
    return [
        f'{by_hand}; what a tool exports:',
        command_line('import_masks', 'EXPORT', *options, '--out', data),
        command_line('new_config', data),
    ]
