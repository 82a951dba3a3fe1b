"""COCO: JSONs of polygons and RLE.

There may be several, as in the folders `train` and `valid` of a Roboflow export.
"""

import posixpath
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from mmseg_cct.errors import UserError

from ..class_table import class_name
from ..rle import coco_counts, mask_of_runs
from ..shapes import AnnotatedImage, Annotations, Shape
from ..source import Source, reading
from .geometry import box, points_of, region

TITLE = 'COCO'


def files(source: Source) -> list[str]:
    """Finds the JSONs with images, annotations and categories."""
    keys = {'images', 'annotations', 'categories'}
    return [name for name, (_, found) in source.json_keys.items() if found >= keys]


def read(source: Source) -> Annotations:
    """Reads all JSON files; categories with the same name are one class."""
    classes: dict[str, None] = {}
    listed = []
    known = set(source.names)
    for file in files(source):
        with reading(source.place(file)):
            content = source.json(file)
            images, parts_of = _by_id(content['images'], 'image'), defaultdict(list)
            for annotation in content['annotations']:
                if (of := str(annotation['image_id'])) not in images:
                    found = f'annotation {annotation.get("id")}: image_id={of}'
                    raise UserError(found, '', 'the id of an image')
                parts_of[of].append(annotation)
            categories = _by_id(content['categories'], 'category')
            names = {key: class_name(each['name']) for key, each in categories.items()}
            classes |= dict.fromkeys(names.values())
            # Label Studio multiplies shares of the image as shown by the sides as stored.
            is_relative = (content.get('info') or {}).get('contributor') == 'Label Studio'
            for key, image in images.items():
                # Roboflow names images relative to the JSON, most tools relative to their folder
                name = image['file_name']
                beside = posixpath.normpath(posixpath.join(posixpath.dirname(file), name))
                size = int(image['width']), int(image['height'])
                parts = _parts(parts_of[key], names, size)
                place = f'{source.place(file)}: {name}'
                name = beside if beside in known else name
                listed.append(AnnotatedImage(name, size, parts, place, is_relative))
    return Annotations(classes, listed)


def _parts(annotations: list[dict], names: dict[str, str], size: tuple) -> Iterator[Shape]:
    for each in annotations:
        with reading(f'annotation {each.get("id")}'):
            category = str(each['category_id'])
            if category not in names:
                raise UserError(f'category_id={category}', '', f'one of {", ".join(names)}')
            yield from _object(each, names[category], size)


def _object(annotation: dict, label: str, size: tuple) -> Iterator[Shape]:
    """Makes a shape of each part of an object; the parts may overlap."""
    is_crowd = bool(annotation.get('iscrowd'))
    drawn = annotation.get('segmentation') or []
    if isinstance(drawn, dict):  # RLE
        if tuple(drawn['size']) != size[::-1]:
            expected = f'{size[1]}, {size[0]}, the height and width of the image'
            raise UserError('RLE', f'of size {drawn["size"]}', expected)
        counts = drawn['counts']
        counts = coco_counts(counts) if isinstance(counts, str) else counts
        yield Shape.of_mask(label, mask_of_runs(counts, size, 'F'), is_crowd=is_crowd)
    elif polygons := list(filter(None, drawn)):
        for part in polygons:
            yield region(label, points_of(part), is_crowd=is_crowd)
    # What follows lies somewhere but is no region; a caption lies nowhere.
    elif annotation.get('bbox'):
        left, top, width, height = annotation['bbox']
        turn = float((annotation.get('attributes') or {}).get('rotation') or 0)  # CVAT
        ring = box((left, top), (left + width, top + height), turn)
        yield Shape(label, [ring], left_out='box', is_box=True)
    elif annotation.get('keypoints'):
        points = np.asarray(annotation['keypoints'], float).reshape(-1, 3)[:, :2]
        yield Shape(label, [points], left_out='keypoints')


def _by_id(entries: list[dict], what: str) -> dict[str, dict]:
    """Returns entries by their ids, which are numbers or text; entries may be there twice."""
    found: dict[str, dict] = {}
    for each in entries:
        # VIA, for one, makes ids of file names, and two images may get the same.
        if (other := found.setdefault(str(each['id']), each)) != each:
            both = [entry.get('name', entry.get('file_name')) for entry in (other, each)]
            raise UserError(f'{what} {each["id"]}', f'is {both[0]} and {both[1]}', 'one id each')
    return found
