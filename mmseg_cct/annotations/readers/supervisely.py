"""Supervisely: a JSON for each image below `ann`, and `meta.json` with the classes."""

import base64
import zlib
from dataclasses import replace

import cv2
import numpy as np

from mmseg_cct.errors import UserError

from ..pictures import bitmap
from ..shapes import MAX_PIXELS, AnnotatedImage, Annotations, LeftOut, Shape
from ..source import Source, read_each, read_part, reading
from .geometry import box, colour, extent_of, region

TITLE = 'Supervisely'
_META = 'meta.json'
_PACKED = 2**26  # bytes of a PNG; a real one has thousands


def is_mine(source: Source) -> bool:
    """Whether there are a `meta.json` and a JSON with objects and a size."""
    found = (each for each in source.sample.values() if isinstance(each, dict))
    return bool(source.named(_META)) and any(each.keys() >= {'objects', 'size'} for each in found)


def read(source: Source) -> Annotations:
    """Reads all JSON files below `ann`; later objects lie on top."""
    name = source.named(_META)
    with reading(source.place(name), TITLE):
        listed = source.json(name)['classes']
        classes = {str(each['title']): colour(each.get('color')) for each in listed}
    names = [name for name in source.ending('.json') if 'ann' in name.split('/')[:-1]]
    return Annotations(classes, read_each(source, names, TITLE, _image))


def _image(source: Source, name: str) -> AnnotatedImage:
    head, _, tail = f'/{name}'.removesuffix('.json').rpartition('/ann/')
    image = f'{head}/img/{tail}'.removeprefix('/')
    if image not in source.names:  # the images are elsewhere
        image = f'{head}/{tail}'.removeprefix('/')
    content = source.json(name)
    size = content['size']['width'], content['size']['height']
    parts = [
        read_part(f'objects[{index}]', TITLE, _left_out(each), _shape, each)
        for index, each in enumerate(content['objects'])
    ]
    return AnnotatedImage(image, size, parts)


def _left_out(each: dict) -> LeftOut:
    points = each.get('points')  # a graph has `nodes`, each with its `loc`
    nodes = [node.get('loc') for node in (each.get('nodes') or {}).values()]
    extent = extent_of(points.get('exterior') if isinstance(points, dict) else nodes)
    return LeftOut(each['geometryType'], extent, each.get('classTitle'))


def _shape(each: dict) -> Shape | LeftOut | None:
    """Makes a shape, later ones on top; returns None for lines and points."""
    kind, label = each['geometryType'], str(each['classTitle'])
    if kind == 'bitmap':
        unpack = zlib.decompressobj()
        try:
            data = unpack.decompress(base64.b64decode(each['bitmap']['data']), _PACKED)
        except zlib.error as error:
            raise UserError('bitmap', f'damaged ({error})', 'a PNG') from None
        left, top = each['bitmap']['origin']
        return Shape(label, mask=bitmap(data), offset=(int(left), int(top)), z=0)
    if kind not in ('polygon', 'rectangle'):
        return None
    outer, *holes = (
        np.asarray(ring, float).reshape(-1, 2)
        for ring in (each['points']['exterior'], *each['points'].get('interior', ()))
    )
    if kind == 'rectangle':
        outer = box(outer.min(0), outer.max(0))
    if len(outer) < 3:
        return region(label, outer)
    holes = [hole for hole in holes if len(hole) > 2]
    shape = Shape(label, [outer, *holes], z=0, is_box=kind == 'rectangle')
    # The labelling tool measures as `Shape` does; the SDK lists the pixels of the outline.
    return _pixels(shape) if all((ring % 1 == 0).all() for ring in shape.polygons) else shape


def _pixels(shape: Shape) -> Shape:
    """Fills the pixels on an outline and inside it; holes likewise."""
    outer = shape.polygons[0]
    (left, top), (right, bottom) = np.stack([outer.min(0), outer.max(0)]).astype(int).tolist()
    width, height = right - left + 1, bottom - top + 1
    if width * height > MAX_PIXELS:
        found = f'{width}×{height} pixels'
        raise UserError('polygon', found, f'at most {MAX_PIXELS} in all')
    mask = np.zeros((height, width), np.uint8)
    for value, rings in ((1, shape.polygons[:1]), (0, shape.polygons[1:])):
        if rings:
            corners = [(ring - [left, top]).astype(np.int32) for ring in rings]
            cv2.fillPoly(mask, corners, value)
    return replace(shape, polygons=(), mask=mask.astype(bool), offset=(left, top))
