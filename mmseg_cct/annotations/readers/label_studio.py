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
from ..shapes import AnnotatedImage, Annotations, Note, Shape, box, ellipse, points_of
from ..shapes import region as region_of
from ..source import Source, attempt, class_names, reading

TITLE = 'Label Studio JSON'
_NOBODY: dict[str, Any] = dict(result=[])  # the annotation of a task that has none
_REGIONS = 'rectangle', 'polygon', 'ellipse', 'brush', 'bitmask'
_NO_REGIONS = 'keypoint', 'vector'
# What is said of an image or a region; all else was drawn. `labels` names a region of its own id.
_NOT_DRAWN = {'labels', 'choices', 'textarea', 'rating', 'number', 'datetime', 'taxonomy'}
_NOT_DRAWN |= {'relation', 'pairwise', 'ranker'}


def files(source: Source) -> list[str]:
    """Finds the JSONs that are lists of tasks."""
    lists = {
        name: keys for name, (json_type, keys) in source.json_keys.items() if json_type is list
    }
    drawn = {'annotations', 'predictions'}
    return [name for name, keys in lists.items() if 'data' in keys and keys & drawn]


def read(source: Source) -> Annotations:
    """Reads all JSON files; classes are sorted by name, because the export gives no order."""
    lists = {name: source.json(name) for name in files(source)}
    classes = class_names(
        chain.from_iterable(lists.values()),
        lambda task: chain.from_iterable(_labels(_annotations(task)[-1]['result']).values()),
    )

    def images() -> Iterator[AnnotatedImage | UserError]:
        for name, tasks in lists.items():
            for index, task in enumerate(tasks):
                task_id = task.get('id') if isinstance(task, dict) else index
                location = f'{source.location(name)}: task {task_id}'
                yield attempt(location, _image, task, location)

    return Annotations(classes, images())


def _image(task: dict, location: str) -> AnnotatedImage:
    """Reads a task: of its annotations the ground truth or else the latest one counts."""
    *earlier, last = _annotations(task)
    results = last['result']
    drawn = [result for result in results if result['type'] not in _NOT_DRAWN]
    sizes = {(result['original_width'], result['original_height']) for result in drawn}
    # Results of several images, of which one mask can hold only one
    if len(sizes) > 1:
        raise UserError('original_width, original_height', f'{sizes}', 'one size')
    size = sizes.pop() if sizes else None
    num_rivals = sum(bool(annotation['result']) for annotation in earlier)
    parts = _parts(results, size or (0, 0), num_rivals)
    name = _name(task['data'], {result.get('to_name') for result in results})
    is_done = last is not _NOBODY and not num_rivals
    return AnnotatedImage(name, size, parts, location, is_done=is_done)


def _annotations(task: dict) -> list[dict]:
    """Sorts the annotations that nobody cancelled; the last one counts. Predictions never do."""
    valid = [entry for entry in task.get('annotations', ()) if not entry.get('was_cancelled')]
    valid.sort(key=lambda entry: (bool(entry.get('ground_truth')), str(entry.get('updated_at'))))
    return valid or [_NOBODY]


def _labels(results: list[dict]) -> dict[object, list[str]]:
    """Collects the labels of each region by its id; they may stand in a result of their own."""
    labels: dict[object, list[str]] = defaultdict(list)
    for index, result in enumerate(results):
        value = result.get('value') or {}
        names = value.get(result['type']) or value.get('labels') or ()
        if result['type'].endswith('labels'):
            labels[result.get('id', index)] += map(class_name, names)
    return labels


def _parts(results: list[dict], size: tuple[int, int], num_rivals: int) -> Iterator[Shape | Note]:
    labels, seen = _labels(results), set()
    for index, result in enumerate(results):
        region_id, shape_type = result.get('id', index), result['type'].removesuffix('labels')
        if result['type'] in _NOT_DRAWN:
            continue
        with reading(f'result[{index}]'):
            if shape_type not in (*_REGIONS, *_NO_REGIONS):
                raise UserError(f'type {result["type"]!a}', '', 'a region, a keypoint or a choice')
            if result.get('image_rotation'):
                raise UserError(f'image_rotation={result["image_rotation"]}', '', '0')
            if region_id not in seen:  # two controls may label one region
                seen.add(region_id)
                yield _part(shape_type, result['value'], size, sorted({*labels[region_id]}))
    if num_rivals:
        yield Note('other annotations of a task, not drawn', num_rivals)


def _part(shape_type: str, value: dict, size: tuple[int, int], labels: list[str]) -> Shape:
    """Makes a shape of percentages of the image's size; one that has no label is left out."""
    label, points = labels[0] if len(labels) == 1 else None, None
    if shape_type == 'brush':
        shape = Shape.of_mask(label, brush_alpha(value['rle'], size), z=0)
    elif shape_type == 'bitmask':
        picture = open_picture(base64.b64decode(value['imageDataURL'].partition(',')[2]))
        if picture.size != size:
            picture_size = f'{picture.width}×{picture.height} pixels'
            raise UserError('bitmask', picture_size, f'{size[0]}×{size[1]}')
        shape = Shape.of_mask(label, bitmap(picture), z=0)
    elif shape_type == 'polygon':
        shape = region_of(label, points_of(value['points']) * size / 100, z=0)
    elif shape_type in ('ellipse', 'rectangle'):
        corner, degrees = np.array([value['x'], value['y']]) * size / 100, value.get('rotation', 0)
        if shape_type == 'ellipse':  # its x and y are the centre
            radii = np.array([value['radiusX'], value['radiusY']]) * size / 100
            ring = ellipse(corner, radii, degrees)
        else:
            sides = np.array([value['width'], value['height']]) * size / 100
            ring = box(corner, corner + sides, degrees, about=corner)
        shape = Shape(label, [ring], z=0, is_box=shape_type == 'rectangle' and not degrees)
    else:
        vertices = value.get('vertices') or [value]  # a keypoint is one
        points = points_of([[vertex['x'], vertex['y']] for vertex in vertices]) * size / 100
        return Shape(label, [points], left_out=shape_type)
    if label is None and not shape.left_out:
        problem = 'without a label' if not labels else f'with labels {", ".join(labels)}'
        return Shape(None, [shape.extent], left_out=f'{shape_type} {problem}')
    return shape


def _name(data: dict, tags: set[object]) -> str:
    """Finds the image of a task; among several, that which has the name of the results' tag."""
    image_paths = {}
    for key, value in data.items():
        if isinstance(value, str):  # a path, an address, or the query of a local file
            parts = urlsplit(value)
            path = (parse_qs(parts.query).get('d') or [unquote(parts.path)])[0]
            if PurePosixPath(path).suffix.lower() in IMAGE_SUFFIXES:
                image_paths[key] = path.removeprefix('/')
    tagged = [path for key, path in image_paths.items() if key in tags]
    names = tagged or list(image_paths.values())
    if len(names) != 1:
        expected = 'one image a task' if names else f'one of {", ".join(IMAGE_SUFFIXES)}'
        raise UserError('data', f'{len(names)} paths of images', expected)
    return names[0]
