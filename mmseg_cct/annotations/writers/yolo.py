"""YOLO-seg: a text file of polygons for each image, and `data.yaml` with the classes."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from ..readers.yolo import ORDERED
from .own_files import Export

# The format has no masks. Smaller regions lie on top.
TRACING = dict(stacked=True, masks=False)
_FOLDER = 'yolo'


def write(export: Export) -> None:
    """Writes `yolo/labels/NAME.txt` and `yolo/data.yaml`, and links `yolo/images` to `folder`."""
    link = export.files.folder / _FOLDER / 'images'
    link.parent.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):  # it exists already, or the file system has no links
        link.symlink_to(os.path.relpath(export.folder.resolve(), link.parent.resolve()))
    ids = {name: index for index, name in enumerate(export.classes)}
    with export.files.open(f'{_FOLDER}/data.yaml') as file:
        file.write(f'train: images\nval: images\n{ORDERED}: true\nnames:\n')
        file.writelines(
            f'  {i}: {json.dumps(name, ensure_ascii=False)}\n' for name, i in ids.items()
        )
    for image in export.images:
        name = Path(_FOLDER, 'labels', image.name).with_suffix('.txt')
        with export.files.open(name.as_posix()) as file:
            for shape in image.shapes:
                points = (_one_ring(shape.polygons) / image.size).reshape(-1)
                numbers = ' '.join(f'{each:.7g}' for each in points)
                file.write(f'{ids[str(shape.label)]} {numbers}\n')


def _one_ring(rings: Sequence[np.ndarray]) -> np.ndarray:
    """Joins an outline and its holes by slits without area."""
    ring, *holes = rings
    for hole in holes:
        distances = ((ring[:, None] - hole[None]) ** 2).sum(-1)
        at, of = np.unravel_index(distances.argmin(), distances.shape)
        ring = np.concatenate([ring[: at + 1], np.roll(hole, -of, 0), hole[of : of + 1], ring[at:]])
    return ring
