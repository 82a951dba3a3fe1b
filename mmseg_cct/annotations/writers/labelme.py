"""labelme: a JSON for each image with polygons, and masks for regions with holes."""

import base64
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ..shapes import Shape
from .output import Export

_FOLDER = 'labelme'


def write(export: Export) -> None:
    """Writes `labelme/labels.txt`, and `labelme/NAME.json` with the path of each image."""
    with export.open(f'{_FOLDER}/labels.txt') as file:
        file.writelines(f'{name}\n' for name in export.classes)
    for image in export.images:
        name = Path(_FOLDER, image.name).with_suffix('.json')
        width, height = image.size
        folder, shapes = export.out.resolve() / name.parent, list(map(_shape, image.shapes))
        content: dict[str, Any] = dict(
            version='5.5.0',
            flags={},
            shapes=shapes,
            imagePath=os.path.relpath(export.folder.resolve() / image.name, folder),
            imageData=None,
            imageHeight=height,
            imageWidth=width,
        )
        with export.open(name.as_posix()) as file:
            json.dump(content, file, ensure_ascii=False)


def _shape(shape: Shape) -> dict[str, Any]:
    if shape.mask is None:
        geometry = dict(points=shape.polygons[0].tolist(), shape_type='polygon', mask=None)
    else:
        buffer = io.BytesIO()
        Image.fromarray(shape.mask).save(buffer, format='PNG')
        first = np.array(shape.offset)
        # labelme counts both corner pixels, as the first and last of a range
        last = first + shape.mask.shape[::-1] - 1
        geometry = dict(points=[first.tolist(), last.tolist()], shape_type='mask')
        geometry['mask'] = base64.b64encode(buffer.getvalue()).decode()
    return dict(label=shape.label, group_id=None, description='', flags={}, **geometry)
