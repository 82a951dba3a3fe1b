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
from ..shapes import AnnotatedImage, Annotations, Shape, box, points_of, region
from ..source import Source, reading

TITLE = 'COCO'


def files(source: Source) -> list[str]:
    """Finds the JSONs with images, annotations and categories."""
    required = {'images', 'annotations', 'categories'}
    return [name for name, (_, keys) in source.json_keys.items() if keys >= required]


def read(source: Source) -> Annotations:
    """Reads all JSON files; categories with the same name are one class."""
    classes: dict[str, None] = {}
    annotated = []
    source_names = set(source.names)
    for file in files(source):
        with reading(source.location(file)):
            content = source.json(file)
            images, annotations = _by_id(content['images'], 'image'), defaultdict(list)
            for annotation in content['annotations']:
                if (image_id := str(annotation['image_id'])) not in images:
                    key = f'annotation {annotation.get("id")}: image_id={image_id}'
                    raise UserError(key, '', 'the id of an image')
                annotations[image_id].append(annotation)
            categories = _by_id(content['categories'], 'category')
            labels = {key: class_name(entry['name']) for key, entry in categories.items()}
            classes |= dict.fromkeys(labels.values())
            # Label Studio multiplies shares of the image as shown by the sides as stored.
            is_relative = (content.get('info') or {}).get('contributor') == 'Label Studio'
            for image_id, image in images.items():
                # Roboflow names images relative to the JSON, most tools relative to their folder
                name = image['file_name']
                beside = posixpath.normpath(posixpath.join(posixpath.dirname(file), name))
                size = int(image['width']), int(image['height'])
                parts = _parts(annotations[image_id], labels, size)
                location = f'{source.location(file)}: {name}'
                name = beside if beside in source_names else name
                annotated.append(
                    AnnotatedImage(name, size, parts, location, is_relative, subset=file)
                )
    return Annotations(classes, annotated)


def _parts(annotations: list[dict], labels: dict[str, str], size: tuple) -> Iterator[Shape]:
    for annotation in annotations:
        with reading(f'annotation {annotation.get("id")}'):
            yield from _object(annotation, labels[str(annotation['category_id'])], size)


def _object(annotation: dict, label: str, size: tuple) -> Iterator[Shape]:
    """Makes a shape of each part of an object; the parts may overlap."""
    is_crowd = bool(annotation.get('iscrowd'))
    segmentation = annotation.get('segmentation') or []
    if isinstance(segmentation, dict):  # RLE
        if tuple(segmentation['size']) != size[::-1]:
            expected = f'{size[1]}, {size[0]}, the height and width of the image'
            raise UserError('RLE', f'of size {segmentation["size"]}', expected)
        counts = segmentation['counts']
        counts = coco_counts(counts) if isinstance(counts, str) else counts
        yield Shape.of_mask(label, mask_of_runs(counts, size, 'F'), is_crowd=is_crowd)
    elif polygons := list(filter(None, segmentation)):
        for polygon in polygons if isinstance(polygons[0], list) else [segmentation]:
            yield region(label, points_of(polygon), is_crowd=is_crowd)
    # What follows lies somewhere but is no region; a caption lies nowhere.
    elif annotation.get('bbox'):
        left, top, width, height = annotation['bbox']
        degrees = float((annotation.get('attributes') or {}).get('rotation') or 0)  # CVAT
        ring = box((left, top), (left + width, top + height), degrees)
        yield Shape(label, [ring], left_out='box', is_box=True)
    elif annotation.get('keypoints'):
        points = np.asarray(annotation['keypoints'], float).reshape(-1, 3)[:, :2]
        yield Shape(label, [points], left_out='keypoints')


def _by_id(entries: list[dict], noun: str) -> dict[str, dict]:
    """Returns entries by their ids, which are numbers or text; entries may be there twice."""
    by_id: dict[str, dict] = {}
    for entry in entries:
        # VIA, for one, makes ids of file names, and two images may get the same.
        if (namesake := by_id.setdefault(str(entry['id']), entry)) != entry:
            first, second = (e.get('name', e.get('file_name')) for e in (namesake, entry))
            raise UserError(f'{noun} {entry["id"]}', f'is {first} and {second}', 'one id each')
    return by_id
