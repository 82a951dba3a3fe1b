"""Label Studio: its JSON, with polygons, boxes, ellipses, brushes and bitmasks."""

import base64
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np

from mmseg_cct.datasets.files.image_files import IMAGE_SUFFIXES
from mmseg_cct.errors import UserError

from ..class_table import class_name
from ..pictures import bitmap, open_picture
from ..rle import brush_alpha
from ..shapes import AnnotatedImage, Annotations, Note, Shape
from ..source import Source, attempt, class_names, reading
from .geometry import box, ellipse, points_of
from .geometry import region as region_of

TITLE = 'Label Studio JSON'
_NOBODY: dict[str, Any] = dict(result=[])  # the annotation of a task that has none
_REGIONS = 'rectangle', 'polygon', 'ellipse', 'brush', 'bitmask'
_NO_REGIONS = 'keypoint', 'vector'
# What is said of an image or a region; all else was drawn. `labels` names a region of its own id.
_NOT_DRAWN = {
    *('labels', 'choices', 'textarea', 'rating', 'number', 'datetime', 'taxonomy', 'relation'),
    *('pairwise', 'ranker'),
}


def files(source: Source) -> list[str]:
    """Finds the JSONs that are lists of tasks."""
    return [
        name
        for name, (kind, keys) in source.json_keys.items()
        if kind is list and 'data' in keys and keys & {'annotations', 'predictions'}
    ]


def read(source: Source) -> Annotations:
    """Reads all JSON files; classes are sorted by name, because the export gives no order."""
    lists = {name: source.json(name) for name in files(source)}
    classes = class_names(
        chain.from_iterable(lists.values()),
        lambda task: chain.from_iterable(_labels(_annotations(task)[-1]['result']).values()),
    )
    places = [
        (f'{source.place(name)}: task {task.get("id") if isinstance(task, dict) else index}', task)
        for name, tasks in lists.items()
        for index, task in enumerate(tasks)
    ]
    images = (attempt(place, _image, task, place) for place, task in places)
    return Annotations(classes, images)


def _image(task: dict, place: str) -> AnnotatedImage:
    """Reads a task: of its annotations the ground truth or else the latest one counts."""
    *others, last = _annotations(task)
    results = last['result']
    sizes = {
        (each['original_width'], each['original_height'])
        for each in results
        if each['type'] not in _NOT_DRAWN
    }
    # Results of several images, of which one mask can hold only one
    if len(sizes) > 1:
        raise UserError('original_width, original_height', f'{sizes}', 'one size')
    size = sizes.pop() if sizes else None
    rivals = sum(bool(each['result']) for each in others)
    parts = _parts(results, size or (0, 0), rivals)
    name = _name(task['data'], {each.get('to_name') for each in results})
    return AnnotatedImage(name, size, parts, place, is_done=last is not _NOBODY and not rivals)


def _annotations(task: dict) -> list[dict]:
    """Sorts the annotations that nobody cancelled; the last one counts. Predictions never do."""
    done = [each for each in task.get('annotations', ()) if not each.get('was_cancelled')]
    done.sort(key=lambda each: (bool(each.get('ground_truth')), str(each.get('updated_at'))))
    return done or [_NOBODY]


def _labels(results: list[dict]) -> dict[object, list[str]]:
    """Collects the labels of each region by its id; they may stand in a result of their own."""
    labels: dict[object, list[str]] = defaultdict(list)
    for index, each in enumerate(results):
        value = each.get('value') or {}
        named = value.get(each['type']) or value.get('labels') or ()
        if each['type'].endswith('labels'):
            labels[each.get('id', index)] += map(class_name, named)
    return labels


def _parts(results: list[dict], size: tuple[int, int], rivals: int) -> Iterator[Shape | Note]:
    labels, seen = _labels(results), set()
    for index, each in enumerate(results):
        key, kind = each.get('id', index), each['type'].removesuffix('labels')
        if each['type'] in _NOT_DRAWN:
            continue
        with reading(f'result[{index}]'):
            if kind not in (*_REGIONS, *_NO_REGIONS):
                raise UserError(f'type {each["type"]!a}', '', 'a region, a keypoint or a choice')
            if each.get('image_rotation'):
                raise UserError(f'image_rotation={each["image_rotation"]}', '', '0')
            if key not in seen:  # two controls may label one region
                seen.add(key)
                yield _part(kind, each['value'], size, sorted({*labels[key]}))
    if rivals:
        yield Note('other annotations of a task, not drawn', rivals)


def _part(kind: str, value: dict, size: tuple[int, int], labels: list[str]) -> Shape:
    """Makes a shape of percentages of the image's size; one that has no label is left out."""
    label, points = labels[0] if len(labels) == 1 else None, None
    if kind == 'brush':
        shape = Shape.of_mask(label, brush_alpha(value['rle'], size), z=0)
    elif kind == 'bitmask':
        picture = open_picture(base64.b64decode(value['imageDataURL'].partition(',')[2]))
        if picture.size != size:
            found = f'{picture.width}×{picture.height} pixels'
            raise UserError('bitmask', found, f'{size[0]}×{size[1]}')
        shape = Shape.of_mask(label, bitmap(picture), z=0)
    elif kind == 'polygon':
        shape = region_of(label, points_of(value['points']) * size / 100, z=0)
    elif kind in ('ellipse', 'rectangle'):
        corner, turn = np.array([value['x'], value['y']]) * size / 100, value.get('rotation', 0)
        if kind == 'ellipse':  # its x and y are the centre
            ring = ellipse(
                corner, np.array([value['radiusX'], value['radiusY']]) * size / 100, turn
            )
        else:
            sides = np.array([value['width'], value['height']]) * size / 100
            ring = box(corner, corner + sides, turn, about=corner)
        shape = Shape(label, [ring], z=0, is_box=kind == 'rectangle' and not turn)
    else:
        places = value.get('vertices') or [value]  # a keypoint is one
        points = points_of([[place['x'], place['y']] for place in places]) * size / 100
        return Shape(label, [points], left_out=kind)
    if label is None and not shape.left_out:
        number = 'without a label' if not labels else f'with labels {", ".join(labels)}'
        return Shape(None, [shape.extent], left_out=f'{kind} {number}')
    return shape


def _name(data: dict, tags: set[object]) -> str:
    """Finds the image of a task; among several, that which has the name of the results' tag."""
    found = {}
    for key, value in data.items():
        if isinstance(value, str):  # a path, an address, or the query of a local file
            parts = urlsplit(value)
            path = (parse_qs(parts.query).get('d') or [unquote(parts.path)])[0]
            if PurePosixPath(path).suffix.lower() in IMAGE_SUFFIXES:
                found[key] = path.removeprefix('/')
    names = [name for key, name in found.items() if key in tags] or list(found.values())
    if len(names) != 1:
        expected = 'one image a task' if names else f'one of {", ".join(IMAGE_SUFFIXES)}'
        raise UserError('data', f'{len(names)} paths of images', expected)
    return names[0]
