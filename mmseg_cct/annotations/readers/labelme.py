"""labelme: a JSON for each image, which may hold the image itself."""

import base64
import posixpath

import numpy as np

from ..pictures import bitmap
from ..shapes import AnnotatedImage, Annotations, LeftOut, Shape
from ..source import Source, class_names, read_each, read_part
from .geometry import box, ellipse, extent_of, polygon, region

TITLE = 'labelme'
_IGNORED = '__ignore__'  # by labelme's convention
_LABELS = 'labels.txt'


def is_mine(source: Source) -> bool:
    """Whether a JSON has shapes and the path of an image."""
    keys = {'imagePath', 'shapes'}
    return any(isinstance(each, dict) and each.keys() >= keys for each in source.sample.values())


def read(source: Source) -> Annotations:
    """Reads all JSON files; classes are in the order of `labels.txt`, or sorted by name."""
    names = source.ending('.json')
    if _LABELS in source.names:
        labels = dict.fromkeys(filter(None, map(str.strip, source.text(_LABELS).splitlines())))
    else:  # one file at a time, because each may hold an image
        labels = class_names(names, lambda name: [*map(_label, source.json(name)['shapes'])])
    labels.pop(_IGNORED, None)
    return Annotations(labels, read_each(source, names, TITLE, _image))


def _image(source: Source, name: str) -> AnnotatedImage:
    content = source.json(name)
    parts = [
        read_part(f'shapes[{index}]', TITLE, _left_out(each), _shape, each)
        for index, each in enumerate(content['shapes'])
    ]
    data = content.get('imageData')
    size = content['imageWidth'], content['imageHeight']
    path = content['imagePath'].replace('\\', '/')  # as Windows writes it
    path = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
    return AnnotatedImage(
        '/'.join(part for part in path.split('/') if part != '..'),  # stays in the export
        size if all(size) else None,
        parts,
        base64.b64decode(data) if data else None,
    )


def _label(shape: dict) -> str:
    return str(shape['label']).strip()  # like the lines of labels.txt


def _left_out(shape: dict) -> LeftOut:
    kind, extent = shape.get('shape_type') or 'polygon', extent_of(shape.get('points'))
    return LeftOut(str(kind), extent, _label(shape), shape.get('group_id'))


def _shape(shape: dict) -> Shape | LeftOut | None:
    """Makes a shape, later ones on top; returns None for lines and points."""
    label = None if _label(shape) == _IGNORED else _label(shape)
    kind, points = shape.get('shape_type') or 'polygon', polygon(shape['points'])
    if kind == 'mask':
        left, top = map(round, points.min(0).tolist())
        mask = bitmap(base64.b64decode(shape['mask']))
        return Shape(label, mask=mask, offset=(left, top), z=0, group=shape.get('group_id'))
    if kind == 'rectangle':
        points = box(points.min(0), points.max(0)) if len(points) == 2 else points
    elif kind == 'circle':
        centre, on = points
        radius = float(np.linalg.norm(on - centre))
        points = ellipse(centre, (radius, radius))
    elif kind not in ('polygon', 'oriented_rectangle', 'rotation', 'quadrilateral'):
        return None
    return region(label, points, z=0, is_box=kind == 'rectangle', group=shape.get('group_id'))
