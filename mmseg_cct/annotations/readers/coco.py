"""COCO: JSONs of polygons and RLE, and panoptic ones with PNGs whose colours are segments' ids.

There may be several JSONs, as in the folders `train` and `valid` of a Roboflow export.
"""

import posixpath
from collections.abc import Iterator
from typing import Any, NamedTuple

from mmseg_cct.errors import UserError

from ..pictures import decode, pack, rgb
from ..rle import coco_counts, mask_of_runs
from ..shapes import AnnotatedImage, Annotations, LeftOut, Shape
from ..source import Source, attempt, read_part, reading
from .geometry import extent_of, is_upright, polygon, region

TITLE = 'COCO'
AUTHOR = 'mmseg_cct'  # the contributor of files that this project wrote: later ones lie on top


def is_mine(source: Source) -> bool:
    """Whether a JSON has images, annotations and categories."""
    return any(map(_is_coco, source.sample.values()))


def read(source: Source) -> Annotations:
    """Reads all JSON files; categories with the same name are one class."""
    files = source.jsons(_is_coco)
    classes: dict[str, None] = {}
    for name, content in files.items():
        with reading(source.place(name), TITLE):
            classes |= dict.fromkeys(_names(content).values())
            for each in content['annotations']:
                if 'segments_info' in each:
                    source.masks.add(_picture(source, name, each['file_name']))
    return Annotations(classes, _images(source, files))


def _is_coco(content: Any) -> bool:
    keys = ('images', 'annotations', 'categories')
    return isinstance(content, dict) and all(isinstance(content.get(key), list) for key in keys)


def _names(content: dict) -> dict[int, str]:
    """Returns names by id, without categories that only group others, as Roboflow's first does."""
    segments = (each.get('segments_info', [each]) for each in content['annotations'])
    used = {segment['category_id'] for each in segments for segment in each}
    groups = {each.get('supercategory') for each in content['categories']}
    return {
        each['id']: str(each['name'])
        for each in sorted(content['categories'], key=lambda each: each['id'])
        if each['id'] in used
        or each['name'] not in groups
        or each['name'] == each.get('supercategory')
    }


def _picture(source: Source, name: str, picture: str) -> str:
    """Finds a PNG in the folder of the JSON's name, beside the JSON or anywhere in the export."""
    ends = f'{posixpath.splitext(posixpath.basename(name))[0]}/{picture}', picture
    matches = (each for end in ends for each in source.names if f'/{each}'.endswith(f'/{end}'))
    if mask := next(matches, None):
        return mask
    found = f'a COCO panoptic JSON without its {picture}'
    raise UserError(source.place(name), found, 'the folder or ZIP of JSON and PNGs')


def _images(source: Source, files: dict[str, Any]) -> Iterator[AnnotatedImage | UserError]:
    for name, content in files.items():
        with reading(source.place(name), TITLE):
            names = _names(content)
            of_image: dict[int, list] = {image['id']: [] for image in content['images']}
            for annotation in content['annotations']:
                if annotation['image_id'] not in of_image:
                    found = f'annotation {annotation["id"]}: image_id={annotation["image_id"]!r}'
                    raise UserError(found, '', 'the id of an image')
                of_image[annotation['image_id']].append(annotation)
            # CVAT and Datumaro set `iscrowd` for each mask that is not a polygon, crowd or not.
            has_crowds = all(image.get('date_captured') != 0 for image in content['images'])
            # Label Studio multiplies shares of the image as shown by the sides as stored.
            author = (content.get('info') or {}).get('contributor')
            is_relative = author == 'Label Studio'
            z = 0 if author == AUTHOR else None
            make = _Maker(source, name, names, has_crowds, is_relative, z)
        for image in content['images']:
            place = f'{source.place(name)}: {image.get("file_name")}'
            yield attempt(place, TITLE, make.image, image, of_image[image['id']])


class _Maker(NamedTuple):
    """Makes images and shapes of one file of an export."""

    source: Source
    file: str
    names: dict[int, str]  # by id
    has_crowds: bool  # whether `iscrowd` means a crowd
    is_relative: bool  # as for an `AnnotatedImage`
    # as for a `Shape`: 0 where later annotations lie on top, since this project wrote the file; it
    # writes no boxes around its regions
    z: int | None

    def image(self, image: dict, annotations: list[dict]) -> AnnotatedImage:
        size = image['width'], image['height']
        parts = [
            part
            for each in annotations
            for part in (self._segments if 'segments_info' in each else self._parts)(each, size)
        ]
        name = self.source.beside(self.file, image['file_name'])
        return AnnotatedImage(name, size, parts, is_relative=self.is_relative)

    def _segments(self, annotation: dict, size: tuple[int, int]) -> Iterator[Shape]:
        """Makes a mask of each segment of a panoptic annotation."""
        name = _picture(self.source, self.file, annotation['file_name'])
        picture = decode(self.source.read(name))
        _require_size('PNG', picture.size, size)
        ids = pack(rgb(picture)[..., ::-1])  # red counts 1, green 256, blue 65536
        for each in annotation['segments_info']:
            label = None if each.get('iscrowd') else self.names[each['category_id']]
            yield Shape(label, mask=ids == each['id'])

    def _parts(self, annotation: dict, size: tuple[int, int]) -> Iterator[Shape | LeftOut]:
        """Makes a shape of each part of an object; the parts may overlap."""
        place, segmentation = f'annotation {annotation.get("id")}', annotation.get('segmentation')
        label, box = self.names.get(annotation.get('category_id', -1)), None
        if isinstance(annotation.get('bbox'), list) and len(annotation['bbox']) == 4:
            left, top, width, height = annotation['bbox']
            box = extent_of([left, top, left + width, top + height])
        if not segmentation:
            yield LeftOut('box', box, label, z=self.z)
            return
        if isinstance(segmentation, dict) or isinstance(segmentation[0], float | int | str):
            segmentation = [segmentation]  # RLE, or one polygon's numbers that are not nested
        for part in segmentation:
            if not part:
                yield LeftOut('polygon of fewer than three points', None, label)
                continue
            extent = box if isinstance(part, dict) else extent_of(part)
            otherwise = LeftOut('region', box if extent is None else extent, label)
            yield read_part(place, TITLE, otherwise, self._shape, annotation, part, size)

    def _shape(self, annotation: dict, part: Any, size: tuple[int, int]) -> Shape | LeftOut:
        if (of := annotation['category_id']) not in self.names:
            raise UserError(f'category_id={of!r}', '', f'one of {list(self.names)}')
        label = None if self.has_crowds and annotation.get('iscrowd') else self.names[of]
        if not isinstance(part, dict):
            ring = polygon(part)
            return region(label, ring, z=self.z, is_box=self.z is None and is_upright(ring))
        height, width = part['size']
        _require_size('RLE', (width, height), size)
        counts = part['counts']
        if isinstance(counts, str):
            counts = coco_counts(counts)
        return Shape(label, mask=mask_of_runs(counts, (width, height), 'F'), z=self.z)


def _require_size(what: str, found: tuple[int, int], size: tuple[int, int]) -> None:
    if found != size:
        expected = f'{size[0]}×{size[1]}, the size of the image'
        raise UserError(what, f'of {found[0]}×{found[1]} pixels', expected)
