"""labelme: a JSON for each image."""

import base64
import posixpath
from collections.abc import Iterator

import numpy as np

from mmseg_cct.errors import UserError

from ..class_table import class_name
from ..pictures import bitmap, open_picture
from ..shapes import AnnotatedImage, Annotations, Shape, box, ellipse, points_of, region
from ..source import Source, attempt, class_names, reading

TITLE = 'labelme'
_IGNORED = '__ignore__'  # by labelme's convention
_LABELS = 'labels.txt'
_POLYGONS = 'polygon', 'oriented_rectangle', 'rotation', 'quadrilateral'
_NO_REGIONS = 'point', 'points', 'line', 'linestrip'


def files(source: Source) -> list[str]:
    """Finds the JSONs with shapes and the path of an image."""
    return [name for name, (_, keys) in source.json_keys.items() if keys >= {'imagePath', 'shapes'}]


def read(source: Source) -> Annotations:
    """Reads all JSON files; classes are in the order of `labels.txt`, or sorted by name."""
    names = files(source)
    if _LABELS in source.names:
        with reading(source.location(_LABELS)):
            lines = source.read(_LABELS).decode('utf-8-sig').splitlines()
        labels = dict.fromkeys(filter(None, map(str.strip, lines)))
    else:  # one file at a time, because each may hold an image
        labels = class_names(
            names, lambda name: [class_name(s['label']) for s in source.json(name)['shapes']]
        )
    labels.pop(_IGNORED, None)
    images = (attempt(source.location(name), _image, source, name) for name in names)
    return Annotations(labels, images)


def _image(source: Source, name: str) -> AnnotatedImage:
    content = source.json(name)
    size = content.get('imageWidth'), content.get('imageHeight')
    path = content['imagePath'].replace('\\', '/')  # as Windows writes it
    path = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
    return AnnotatedImage(
        '/'.join(part for part in path.split('/') if part != '..'),  # stays in the export
        (int(size[0]), int(size[1])) if all(size) else None,
        _parts(content),
        source.location(name),
        subset=posixpath.dirname(name),
    )


def _parts(content: dict) -> Iterator[Shape]:
    for index, shape in enumerate(content['shapes']):
        with reading(f'shapes[{index}]'):
            yield _part(shape)


def _part(shape: dict) -> Shape:
    name = class_name(shape['label'])
    label = None if name == _IGNORED else name
    shape_type, points = shape.get('shape_type') or 'polygon', points_of(shape['points'])
    if shape_type == 'mask':
        picture = open_picture(base64.b64decode(shape['mask']))
        left, top = map(round, points.min(0).tolist())
        return Shape(label, mask=bitmap(picture), offset=(left, top), z=0)
    if shape_type in _NO_REGIONS:
        return Shape(label, [points], left_out=shape_type)
    if shape_type == 'rectangle':
        points = box(points.min(0), points.max(0)) if len(points) == 2 else points
    elif shape_type == 'circle':
        center, rim = points
        radius = float(np.linalg.norm(rim - center))
        points = ellipse(center, (radius, radius))
    elif shape_type not in _POLYGONS:
        raise UserError(f'shape_type {shape_type!a}', '', f'one of those of {TITLE}')
    return region(label, points, z=0, is_box=shape_type == 'rectangle')
