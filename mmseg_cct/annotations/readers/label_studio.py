"""Label Studio: its JSON and JSON-MIN, with polygons, boxes, ellipses and brushes."""

from collections.abc import Iterator
from itertools import chain
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np

from mmseg_cct.datasets.files.image_files import IMAGE_SUFFIXES
from mmseg_cct.errors import UserError

from ..rle import brush_alpha
from ..shapes import AnnotatedImage, Annotations, LeftOut, Shape
from ..source import Source, attempt, class_names, read_part
from .geometry import box, ellipse, extent_of, polygon
from .geometry import region as region_of

TITLE = 'Label Studio JSON'


def is_mine(source: Source) -> bool:
    """Whether a JSON is a list of tasks."""
    return any(map(_is_tasks, source.sample.values()))


def read(source: Source) -> Annotations:
    """Reads all JSON files; classes are sorted by name, because the export gives no order."""
    files = {name: _whole(tasks) for name, tasks in source.jsons(_is_tasks).items()}

    def labels_of(task: dict) -> Iterator[str]:
        for region in _regions(task)[0]:
            yield from _labels(region)

    classes = class_names(chain.from_iterable(files.values()), labels_of)
    return Annotations(classes, _images(source, files))


def _is_tasks(content: Any) -> bool:
    if not isinstance(content, list) or not content or not isinstance(content[0], dict):
        return False
    first = content[0]
    is_whole = 'data' in first and first.keys() & {'annotations', 'predictions'}
    return bool(is_whole) or 'annotation_id' in first


def _whole(tasks: list[Any]) -> list[Any]:
    """Makes tasks of the entries of JSON-MIN, each of which is the annotation of one person.

    An entry has a list for each tag beside the data, without an order between them.
    """
    whole: dict[str, Any] = {}
    for index, task in enumerate(tasks):
        if not isinstance(task, dict) or 'data' in task:
            whole[f'[{index}]'] = task
            continue
        lists = [value for value in task.values() if isinstance(value, list) and value]
        result = [{**each, 'value': each} for of in lists for each in of if isinstance(each, dict)]
        new: Any = dict(id=task.get('id'), data=task, annotations=[], z=None if lists[1:] else 0)
        of_task = whole.setdefault(str(task.get('id', index)), new)['annotations']
        of_task.append(dict(result=result, updated_at=task.get('updated_at')))
    return list(whole.values())


def _images(source: Source, files: dict[str, list[Any]]) -> Iterator[AnnotatedImage | UserError]:
    for name, tasks in files.items():
        for index, task in enumerate(tasks):
            number = task.get('id') if isinstance(task, dict) else f'[{index}]'
            found = attempt(f'{source.place(name)}: task {number}', TITLE, _task, task)
            yield from found if isinstance(found, list) else [found]


def _task(task: dict) -> list[AnnotatedImage]:
    """Reads a task, which may show several images or pages; each result names its own."""
    regions, others = _regions(task)
    addresses, is_done = _addresses(task['data']), bool(_done(task))
    parts_of: dict[str, list[Shape | LeftOut]] = {}
    sizes: dict[str, set[tuple[int, int]]] = {}
    labelled = {region.get('id') for region in regions if _labels(region)}
    for index, region in enumerate(regions):
        part = _part(f'result[{index}]', region, region.get('id') in labelled, task.get('z', 0))
        if part:
            name = _name(addresses, region.get('to_name'), region.get('item_index'))
            parts_of.setdefault(name, []).append(part)
            if isinstance(part, Shape):
                sizes.setdefault(name, set()).add(_size(region))
    if not parts_of:
        parts_of[next(iter(addresses.values()))[0]] = []
    images = []
    for name, parts in parts_of.items():
        size, *more = sizes.get(name) or [None]
        if more:
            found = f'{sizes[name]}'
            raise UserError('original_width, original_height', found, 'one size')
        parts += [LeftOut(kind) for kind in others]
        images.append(AnnotatedImage(name, size, parts, is_done=is_done))
    return images


def _part(place: str, region: dict, is_labelled: bool, z: int | None) -> Shape | LeftOut | None:
    """Reads what is drawn; returns None for choices, and for a drawing that another one labels."""
    value, kind, labels = _value(region), _kind(region), _labels(region)
    if not (kind or value.keys() & {'x', 'vertices'}) or (kind and not labels and is_labelled):
        return None
    if region.get('image_rotation'):
        found = f'{place}: image_rotation={region["image_rotation"]}'
        raise UserError(found, '', 'the image as it is')
    what = (
        f'{kind} without a label' if kind and not labels else kind or region.get('type', 'result')
    )
    otherwise = LeftOut(what, _extent(region), labels[0] if labels else None)
    return read_part(place, TITLE, otherwise, _shape, region, z)


def _value(region: dict) -> dict:
    return region.get('value') or {}  # a relation between regions has none


def _size(region: dict) -> tuple[int, int]:
    return region['original_width'], region['original_height']


def _extent(region: dict) -> np.ndarray | None:
    value = _value(region)
    if 'rle' in value and not _labels(region):
        mask = brush_alpha(value['rle'], _size(region))
        return Shape(None, mask=mask).extent if mask.any() else None
    points = value.get('points') or [(of.get('x'), of.get('y')) for of in value.get('vertices', ())]
    if 'x' in value and 'y' in value:
        sides = np.array([value.get('width', 0), value.get('height', 0)])
        points = [(value['x'], value['y']), np.add((value['x'], value['y']), sides)]
    extent = extent_of(points)
    if extent is None or not region.keys() >= {'original_width', 'original_height'}:
        return None
    return extent * _size(region) / 100


def _regions(task: dict) -> tuple[list[dict], list[str]]:
    """Finds the regions of the annotation that counts, and lists the other annotations."""
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
    signs = {'rle': 'brush', 'points': 'polygon', 'radiusX': 'ellipse', 'height': 'rectangle'}
    return next((kind for key, kind in signs.items() if key in _value(region)), None)


def _labels(region: dict) -> list[str]:
    value = _value(region)
    return list(map(str, value.get(f'{_kind(region)}labels') or value.get('labels') or ()))


def _shape(region: dict, z: int | None) -> Shape | LeftOut | None:
    """Makes a shape from percentages of the image's size."""
    value, kind, labels = _value(region), _kind(region), _labels(region)
    if not kind or not labels:
        return None
    if len(labels) > 1:
        raise UserError(f'labels {", ".join(labels)}', '', 'one of them')
    label, size = labels[0], _size(region)
    if kind == 'brush':
        return Shape(label, mask=brush_alpha(value['rle'], size), z=z)
    if kind == 'polygon':
        return region_of(label, polygon(value['points']) * size / 100, z=z)
    corner, turn = np.array([value['x'], value['y']]) * size / 100, value.get('rotation', 0)
    if kind == 'ellipse':  # its x and y are the centre
        radii = np.array([value['radiusX'], value['radiusY']]) * size / 100
        return Shape(label, [ellipse(corner, radii, turn)], z=z)
    sides = np.array([value['width'], value['height']]) * size / 100
    ring = box(corner, corner + sides, turn, about=corner)
    return Shape(label, [ring], z=z, is_box=not turn)


def _addresses(data: dict) -> dict[str, list[str]]:
    """Finds the images in a task's data, one or several for each key."""
    found: dict[str, list[str]] = {}
    for key, value in data.items():
        for address in value if isinstance(value, list) else [value]:
            if isinstance(address, str) and (name := _path(address)):
                found.setdefault(key, []).append(name)
    if not found:
        expected = f'one of {", ".join(IMAGE_SUFFIXES)}'
        raise UserError('data', 'no path of an image', expected)
    return found


def _path(address: str) -> str:
    """Reads a path, an address or the query of a local file; empty if it is no image."""
    parts = urlsplit(address)
    path = (parse_qs(parts.query).get('d') or [unquote(parts.path)])[0]
    return path.removeprefix('/') if PurePosixPath(path).suffix.lower() in IMAGE_SUFFIXES else ''


def _name(addresses: dict[str, list[str]], key: str | None, index: int | None) -> str:
    """Finds the image of a result, by the tag's name if the task shows several."""
    names = addresses.get(key or '') or next(iter(addresses.values()))
    if len(addresses) > 1 and key not in addresses:
        found = f'images {", ".join(addresses)}, of which to_name={key} is none'
        raise UserError('data', found, 'tags named as the data, or a task for each image')
    if len(names) > 1 and index is None:
        found = f'{len(names)} images, and a result without item_index'
        raise UserError('data', found, 'a task for each image')
    return names[index or 0]
