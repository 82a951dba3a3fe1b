"""Label Studio: its JSON and JSON-MIN, with polygons, boxes, ellipses and brushes."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np

from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_files import IMAGE_SUFFIXES

from ..rle import brush_alpha
from ..shapes import AnnotatedImage, Annotations, Shape
from ..source import Source, attempt, reading
from .geometry import box, ellipse, polygon

TITLE = 'Label Studio JSON'


def is_mine(source: Source) -> bool:
    """Whether a JSON is a list of tasks."""
    return any(map(_is_tasks, source.sample.values()))


def read(source: Source) -> Annotations:
    """Reads all JSON files; classes are sorted by name, because the export gives no order."""
    files = {name: source.json(name) for name in source.ending('.json')}
    files = {name: _latest(content) for name, content in files.items() if _is_tasks(content)}
    found: set[str] = set()
    for tasks in files.values():
        for task in tasks:
            try:
                with reading('', TITLE):
                    for region in _regions(task)[0]:
                        found |= set(_labels(region))
            except UserError:
                continue  # `_images` reports it
    return Annotations(dict.fromkeys(sorted(found)), _images(source, files))


def _is_tasks(content: Any) -> bool:
    if not isinstance(content, list) or not content or not isinstance(content[0], dict):
        return False
    first = content[0]
    whole = 'data' in first and first.keys() & {'annotations', 'predictions'}
    return bool(whole) or 'annotation_id' in first


def _latest(tasks: list[Any]) -> list[Any]:
    """Keeps the latest entry of each task; JSON-MIN has one for each annotator."""
    entries = [task if isinstance(task, dict) else {} for task in tasks]
    entries.sort(key=lambda task: str(task.get('updated_at')))
    return list({str(task.get('id', index)): task for index, task in enumerate(entries)}.values())


def _images(source: Source, files: dict[str, list[dict]]) -> Iterator[AnnotatedImage | UserError]:
    for name, tasks in files.items():
        for task in tasks:
            yield attempt(f'{source.place(name)}: task {task.get("id")}', TITLE, _image, task)


def _image(task: dict) -> AnnotatedImage:
    regions, left_out = _regions(task)
    labelled = {region.get('id') for region in regions if _labels(region)}
    shapes, sizes = [], set()
    for index, region in enumerate(regions):
        with reading(f'result[{index}]', TITLE):
            kind, labels = _kind(region), _labels(region)
            if kind is None:
                if region.get('value', region).keys() & {'x', 'vertices'}:  # drawn on the image
                    left_out.append(region.get('type', 'result'))
            elif not labels:
                if region.get('id') not in labelled:  # else another result labels it
                    left_out.append(f'{kind} without a label')
            elif len(labels) > 1:
                raise UserError(f'labels {", ".join(labels)}', '', 'one of them')
            elif region.get('image_rotation'):
                found = f'image_rotation={region["image_rotation"]}'
                raise UserError(found, '', 'the image as it is')
            else:
                pixels = region['original_width'], region['original_height']
                sizes.add(pixels)
                shapes.append(_shape(kind, labels[0], region.get('value', region), pixels))
    if len(sizes) > 1:
        raise UserError('original_width, original_height', f'{sizes}', 'one size')
    size = sizes.pop() if sizes else None
    name, is_done = _name(task.get('data', task)), 'data' not in task or bool(_done(task))
    return AnnotatedImage(name, size, shapes, is_done=is_done, left_out=left_out)


def _regions(task: dict) -> tuple[list[dict], list[str]]:
    """Finds the regions of the annotation that counts, and lists the other annotations."""
    if 'data' not in task:  # JSON-MIN: a list of each tag beside the data
        lists = (value for value in task.values() if isinstance(value, list))
        return [each for value in lists for each in value if isinstance(each, dict)], []
    done = _done(task)
    if not done:
        return [], ['prediction'] * len(task.get('predictions', ()))
    others = sum(bool(each['result']) for each in done[:-1])
    return list(done[-1]['result']), ['other annotation'] * others


def _done(task: dict) -> list[dict]:
    """Sorts the annotations that nobody cancelled; the last one counts. Predictions never do."""
    done = [each for each in task.get('annotations', ()) if not each.get('was_cancelled')]
    done.sort(key=lambda each: (bool(each.get('ground_truth')), str(each.get('updated_at'))))
    return done


def _kind(region: dict) -> str | None:
    value = region.get('value', region)
    signs = {'rle': 'brush', 'points': 'polygon', 'radiusX': 'ellipse', 'height': 'rectangle'}
    return next((kind for key, kind in signs.items() if key in value), None)


def _labels(region: dict) -> list[str]:
    value = region.get('value', region)
    return list(map(str, value.get(f'{_kind(region)}labels') or value.get('labels') or ()))


def _shape(kind: str, label: str, value: dict, size: tuple[int, int]) -> Shape:
    """Makes a shape from percentages of the image's size."""
    if kind == 'brush':
        return Shape(label, mask=brush_alpha(value['rle'], size))
    if kind == 'polygon':
        return Shape(label, [polygon(value['points']) * size / 100])
    corner, turn = np.array([value['x'], value['y']]) * size / 100, value.get('rotation', 0)
    if kind == 'ellipse':  # its x and y are the centre
        radii = np.array([value['radiusX'], value['radiusY']]) * size / 100
        return Shape(label, [ellipse(corner, radii, turn)])
    sides = np.array([value['width'], value['height']]) * size / 100
    return Shape(label, [box(corner, corner + sides, turn, about=corner)])


def _name(data: dict) -> str:
    """Finds the image in a task's data: a path, an address or the query of a local file."""
    for value in filter(lambda value: isinstance(value, str), data.values()):
        address = urlsplit(value)
        path = (parse_qs(address.query).get('d') or [unquote(address.path)])[0]
        if PurePosixPath(path).suffix.lower() in IMAGE_SUFFIXES:
            return path.removeprefix('/')
    raise UserError('data', 'no path of an image', f'one of {", ".join(IMAGE_SUFFIXES)}')
