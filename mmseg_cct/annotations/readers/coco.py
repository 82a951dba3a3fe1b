"""COCO: JSONs of polygons and RLE, and panoptic ones with PNGs whose colours are segments' ids.

There may be several JSONs, as in the folders `train` and `valid` of a Roboflow export.
"""

import posixpath
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mmseg_cct.errors import UserError

from ..class_table import class_name
from ..pictures import load, open_picture, pack
from ..rle import coco_counts, mask_of_runs
from ..shapes import AnnotatedImage, Annotations, LeftOut, Shape
from ..source import Source, attempt, reading
from .geometry import box, is_upright, points_of, region

TITLE = 'COCO'
AUTHOR = 'mmseg_cct'  # the contributor of files that this project wrote: later ones lie on top
_EXPECTED = 'an id for each'


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
    shown: dict[str, str] = {}  # entry by name of the images with annotations
    for file in _files(source):
        with reading(source.place(file)):
            reader = _File.of(source, file)
            classes |= dict.fromkeys(reader.names.values())
            for key, image in reader.images.items():
                name, entry = source.beside(file, image['file_name']), f'{file} (image {key})'
                if reader.parts_of[key] and (other := shown.setdefault(name, entry)) != entry:
                    found = f'{other} and {entry} both annotate {name}'
                    raise UserError(source.place(file), found, 'one of the two as the export')
        readers.append(reader)
    return Annotations(classes, (image for reader in readers for image in reader.read()))


def _by_id(entries: list[dict], what: str) -> dict[str, dict]:
    """Returns entries by their ids, which are numbers or text; entries may be there twice."""
    found: dict[str, dict] = {}
    for each in entries:
        if (other := found.setdefault(str(each['id']), each)) != each:
            both = [entry.get('name', entry.get('file_name')) for entry in (other, each)]
            raise UserError(f'{what} {each["id"]}', f'{both[0]} and {both[1]}', _EXPECTED)
    return found


def _pictures(source: Source, file: str) -> dict[str, str]:
    """Finds PNGs by name: in the folder of the JSON's name, beside it or anywhere in the export."""
    folder = posixpath.splitext(posixpath.basename(file))[0]
    pictures = source.ending('.png')
    pictures.sort(key=lambda name: folder in name.split('/')[:-1])  # the last one counts
    return {posixpath.basename(name): name for name in pictures}


class _File(NamedTuple):
    """One file of an export."""

    source: Source
    file: str
    images: dict[str, dict]  # by id
    names: dict[str, str]  # of classes, by id
    parts_of: dict[str, list[dict]]  # annotations by the id of their image
    pictures: dict[str, str]  # of panoptic annotations
    is_crowd_meant: bool
    is_relative: bool  # as for an `AnnotatedImage`
    # as for a `Shape`: 0 where later annotations lie on top, since this project wrote the file; it
    # writes no boxes around its regions
    z: int | None

    @classmethod
    def of(cls, source: Source, file: str) -> '_File':
        content = source.json(file)
        images, parts_of = _by_id(content['images'], 'image'), defaultdict(list)
        for annotation in content['annotations']:
            if (image := str(annotation['image_id'])) not in images:
                found = f'annotation {annotation.get("id")}: image_id={image}'
                raise UserError(found, '', 'the id of an image')
            parts_of[image].append(annotation)
        panoptic = [each for each in content['annotations'] if 'segments_info' in each]
        pictures = _pictures(source, file) if panoptic else {}
        named = {posixpath.basename(each['file_name']) for each in panoptic}
        source.masks |= {pictures[name] for name in named & pictures.keys()}
        # Label Studio multiplies shares of the image as shown by the sides as stored.
        author = (content.get('info') or {}).get('contributor')
        return cls(
            *(source, file, images, _names(content), parts_of, pictures),
            # CVAT and Datumaro set `iscrowd` for each mask that is not a polygon, crowd or not.
            is_crowd_meant=any(each.get('date_captured') != 0 for each in images.values()),
            is_relative=author == 'Label Studio',
            z=0 if author == AUTHOR else None,
        )

    def read(self) -> Iterator[AnnotatedImage | UserError]:
        for key, image in self.images.items():
            place = f'{self.source.place(self.file)}: {image.get("file_name")}'
            yield attempt(place, self._image, image, self.parts_of[key], place)

    def _image(self, image: dict, annotations: list[dict], place: str) -> AnnotatedImage:
        size = image.get('width'), image.get('height')
        if not all(size):  # an RLE says it too
            found = (each.get('segmentation') for each in annotations)
            size = next((each['size'][::-1] for each in found if isinstance(each, dict)), size)
        known = (int(size[0] or 0), int(size[1] or 0)) if all(size) else None
        name = self.source.beside(self.file, image['file_name'])
        parts = self._parts(annotations, known)
        return AnnotatedImage(name, known, parts, place, is_relative=self.is_relative)

    def _parts(self, annotations: list[dict], size: tuple | None) -> Iterator[Shape | LeftOut]:
        for each in annotations:
            with reading(f'annotation {each.get("id")}'):
                yield from (self._segments if 'segments_info' in each else self._object)(each, size)

    def _name(self, annotation: dict) -> str:
        if (of := str(annotation['category_id'])) not in self.names:
            raise UserError(f'category_id={of}', '', f'one of {", ".join(self.names)}')
        return self.names[of]

    def _segments(self, annotation: dict, size: tuple | None) -> Iterator[Shape]:
        """Makes a mask of each segment of a panoptic annotation."""
        name = self.pictures.get(posixpath.basename(annotation['file_name']))
        if not name:
            found = f'without its {annotation["file_name"]}'
            raise UserError('panoptic', found, 'the folder or ZIP of JSON and PNGs')
        picture = open_picture(self.source.read(name))
        _require_size('PNG', picture.size, size)
        # red counts 1, green 256, blue 65536
        ids = pack(np.asarray(load(picture).convert('RGB'))[..., ::-1])
        for each in annotation['segments_info']:
            mask, is_crowd = ids == each['id'], bool(each.get('iscrowd'))
            yield Shape.of_mask(self._name(each), mask, is_crowd=is_crowd)

    def _object(self, annotation: dict, size: tuple | None) -> Iterator[Shape | LeftOut]:
        """Makes a shape of each part of an object; the parts may overlap."""
        parts = annotation.get('segmentation')
        if not parts:
            yield from self._without_region(annotation)
            return
        if isinstance(parts, dict) or isinstance(parts[0], float | int | str):
            parts = [parts]  # RLE, or one polygon's numbers that are not nested
        label = self._name(annotation)
        is_crowd = self.is_crowd_meant and bool(annotation.get('iscrowd'))
        for part in filter(None, parts):
            if not isinstance(part, dict):
                ring = points_of(part)
                is_box = self.z is None and is_upright(ring)
                yield region(label, ring, z=self.z, is_box=is_box, is_crowd=is_crowd)
                continue
            height, width = part['size']
            _require_size('RLE', (width, height), size)
            counts = part['counts']
            counts = coco_counts(counts) if isinstance(counts, str) else counts
            mask = mask_of_runs(counts, (width, height), 'F')
            yield Shape.of_mask(label, mask, z=self.z, is_crowd=is_crowd)

    def _without_region(self, annotation: dict) -> Iterator[LeftOut]:
        """Leaves out a box or keypoints; a tag or a caption, which lies nowhere, is nothing."""
        if annotation.get('bbox'):
            left, top, width, height = annotation['bbox']
            turn = float((annotation.get('attributes') or {}).get('rotation') or 0)  # CVAT
            ring = box((left, top), (left + width, top + height), turn)
            yield LeftOut('box', ring, self._name(annotation), z=self.z, is_box=True)
        elif annotation.get('keypoints'):
            points = np.asarray(annotation['keypoints'], float).reshape(-1, 3)[:, :2]
            yield LeftOut('keypoints', points, self._name(annotation))


def _names(content: dict) -> dict[str, str]:
    """Returns names by id, without categories that only group others, as Roboflow's first does."""
    segments = (each.get('segments_info', [each]) for each in content['annotations'])
    used = {str(segment.get('category_id')) for each in segments for segment in each}
    groups = {each.get('supercategory') for each in content['categories']}
    # numbers by their value; text as it is
    order = sorted(
        _by_id(content['categories'], 'category').items(), key=lambda of: (len(of[0]), of[0])
    )
    return {
        key: class_name(each['name'])
        for key, each in order
        if key in used or each['name'] not in groups or each['name'] == each.get('supercategory')
    }


def _require_size(what: str, found: tuple[int, int], size: tuple | None) -> None:
    if size is None:
        raise UserError('width, height', 'missing', 'the size of the image')
    if found != size:
        expected = f'{size[0]}×{size[1]}, the size of the image'
        raise UserError(what, f'of {found[0]}×{found[1]} pixels', expected)
