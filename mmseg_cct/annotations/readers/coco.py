"""COCO: JSONs of polygons and RLE.

There may be several, as in the folders `train` and `valid` of a Roboflow export.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mmseg_cct.errors import UserError

from ..class_table import class_name
from ..rle import coco_counts, mask_of_runs
from ..shapes import AnnotatedImage, Annotations, LeftOut, Shape
from ..source import Source, attempt, reading
from .geometry import box, points_of, region

TITLE = 'COCO'


def is_mine(source: Source) -> str:
    """Finds a JSON with images, annotations and categories; empty if there is none."""
    return next(iter(_files(source)), '')


def _files(source: Source) -> list[str]:
    keys = {'images', 'annotations', 'categories'}
    return [name for name, (_, found) in source.json_keys.items() if found >= keys]


def read(source: Source) -> Annotations:
    """Reads all JSON files; categories with the same name are one class."""
    classes: dict[str, None] = {}
    readers = []
    for file in _files(source):
        with reading(source.place(file)):
            reader = _File.of(source, file)
        classes |= dict.fromkeys(reader.names.values())
        readers.append(reader)
    return Annotations(classes, (image for reader in readers for image in reader.read()))


class _File(NamedTuple):
    """One file of an export."""

    source: Source
    file: str
    images: dict[str, dict]  # by id
    names: dict[str, str]  # of classes, by id
    parts_of: dict[str, list[dict]]  # annotations by the id of their image
    is_relative: bool  # as for an `AnnotatedImage`

    @classmethod
    def of(cls, source: Source, file: str) -> '_File':
        content = source.json(file)
        images, parts_of = _by_id(content['images'], 'image'), defaultdict(list)
        for annotation in content['annotations']:
            if (image := str(annotation['image_id'])) not in images:
                found = f'annotation {annotation.get("id")}: image_id={image}'
                raise UserError(found, '', 'the id of an image')
            parts_of[image].append(annotation)
        categories = _by_id(content['categories'], 'category')
        names = {key: class_name(each['name']) for key, each in categories.items()}
        # Label Studio multiplies shares of the image as shown by the sides as stored.
        is_relative = (content.get('info') or {}).get('contributor') == 'Label Studio'
        return cls(source, file, images, names, parts_of, is_relative)

    def read(self) -> Iterator[AnnotatedImage | UserError]:
        for key, image in self.images.items():
            place = f'{self.source.place(self.file)}: {image.get("file_name")}'
            yield attempt(place, self._image, image, self.parts_of[key], place)

    def _image(self, image: dict, annotations: list[dict], place: str) -> AnnotatedImage:
        size = int(image['width']), int(image['height'])
        name = self.source.beside(self.file, image['file_name'])
        parts = self._parts(annotations, size)
        return AnnotatedImage(name, size, parts, place, is_relative=self.is_relative)

    def _parts(self, annotations: list[dict], size: tuple) -> Iterator[Shape | LeftOut]:
        for each in annotations:
            with reading(f'annotation {each.get("id")}'):
                yield from self._object(each, size)

    def _object(self, annotation: dict, size: tuple) -> Iterator[Shape | LeftOut]:
        """Makes a shape of each part of an object; the parts may overlap."""
        category = str(annotation['category_id'])
        if category not in self.names:
            raise UserError(f'category_id={category}', '', f'one of {", ".join(self.names)}')
        label, is_crowd = self.names[category], bool(annotation.get('iscrowd'))
        rle = annotation.get('segmentation') or []
        if isinstance(rle, dict):
            if tuple(rle['size']) != size[::-1]:  # (height, width), though all else is (x, y)
                expected = f'{size[1]}, {size[0]}, the height and width of the image'
                raise UserError('RLE', f'of size {rle["size"]}', expected)
            counts = rle['counts']
            counts = coco_counts(counts) if isinstance(counts, str) else counts
            yield Shape.of_mask(label, mask_of_runs(counts, size, 'F'), is_crowd=is_crowd)
        elif polygons := list(filter(None, rle)):
            for part in polygons:
                yield region(label, points_of(part), is_crowd=is_crowd)
        # What follows lies somewhere but is no region; a caption lies nowhere
        elif annotation.get('bbox'):
            left, top, width, height = annotation['bbox']
            turn = float((annotation.get('attributes') or {}).get('rotation') or 0)  # CVAT
            ring = box((left, top), (left + width, top + height), turn)
            yield LeftOut('box', ring, label, is_box=True)
        elif annotation.get('keypoints'):
            points = np.asarray(annotation['keypoints'], float).reshape(-1, 3)[:, :2]
            yield LeftOut('keypoints', points, label)


def _by_id(entries: list[dict], what: str) -> dict[str, dict]:
    """Returns entries by their ids, which are numbers or text; entries may be there twice."""
    found: dict[str, dict] = {}
    for each in entries:
        if (other := found.setdefault(str(each['id']), each)) != each:
            both = [entry.get('name', entry.get('file_name')) for entry in (other, each)]
            raise UserError(f'{what} {each["id"]}', f'{both[0]} and {both[1]}', 'an id for each')
    return found
