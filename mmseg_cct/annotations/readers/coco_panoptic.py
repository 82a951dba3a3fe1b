"""COCO panoptic: a JSON of segments by image, and PNGs whose colours are ids of segments."""

import posixpath
from collections.abc import Iterator
from typing import Any

from mmseg_cct.errors import UserError

from ..pictures import decode, pack, rgb
from ..shapes import AnnotatedImage, Annotations, Shape
from ..source import Source, attempt, reading

TITLE = 'COCO panoptic'


def is_mine(source: Source) -> bool:
    """Whether the annotations of a JSON have segments."""
    return any(map(_is_panoptic, source.sample.values()))


def read(source: Source) -> Annotations:
    """Reads all JSON files; categories with the same name are one class."""
    files = {name: source.json(name) for name in source.ending('.json')}
    files = {name: content for name, content in files.items() if _is_panoptic(content)}
    classes: dict[str, None] = {}
    for name, content in files.items():
        with reading(source.place(name), TITLE):
            classes |= dict.fromkeys(str(each['name']) for each in content['categories'])
            pictures = [each['file_name'] for each in content['annotations']]
            source.masks |= {_find(source, name, picture) for picture in pictures}
    return Annotations(classes, _images(source, files))


def _is_panoptic(content: Any) -> bool:
    annotations = content.get('annotations') if isinstance(content, dict) else None
    first = annotations[0] if isinstance(annotations, list) and annotations else None
    return isinstance(first, dict) and 'segments_info' in first


def _find(source: Source, name: str, picture: str) -> str:
    """Finds the PNG in the folder of the JSON's name, beside the JSON or anywhere in the export."""
    ends = f'{posixpath.splitext(posixpath.basename(name))[0]}/{picture}', picture
    matches = (each for end in ends for each in source.names if f'/{each}'.endswith(f'/{end}'))
    if mask := next(matches, None):
        return mask
    found = f'a COCO panoptic JSON without its {picture}'
    raise UserError(source.place(name), found, 'the folder or ZIP of JSON and PNGs')


def _images(source: Source, files: dict[str, Any]) -> Iterator[AnnotatedImage | UserError]:
    for name, content in files.items():
        with reading(source.place(name), TITLE):
            images = {image['id']: image['file_name'] for image in content['images']}
            names = {each['id']: str(each['name']) for each in content['categories']}
        for each in content['annotations']:
            place = f'{source.place(name)}: {each.get("file_name")}'
            yield attempt(place, TITLE, _image, source, name, each, images, names)


def _image(
    source: Source, name: str, annotation: dict, images: dict[int, str], names: dict[int, str]
) -> AnnotatedImage:
    picture = decode(source.read(_find(source, name, annotation['file_name'])))
    ids = pack(rgb(picture)[..., ::-1])  # red counts 1, green 256, blue 65536
    shapes = [
        Shape(None if each.get('iscrowd') else names[each['category_id']], mask=ids == each['id'])
        for each in annotation['segments_info']
    ]
    return AnnotatedImage(images[annotation['image_id']], picture.size, shapes)
