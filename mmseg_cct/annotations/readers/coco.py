"""COCO: one JSON or several, as in the folders `train` and `valid` of a Roboflow export."""

from collections.abc import Iterator
from typing import Any

from mmseg_cct.errors import UserError

from ..rle import coco_counts, mask_of_runs
from ..shapes import AnnotatedImage, Annotations, Shape
from ..source import Source, attempt, reading
from .geometry import polygon

TITLE = 'COCO'


def is_mine(source: Source) -> bool:
    """Whether a JSON has images, annotations and categories."""
    return any(map(_is_coco, source.sample.values()))


def read(source: Source) -> Annotations:
    """Reads all JSON files; categories with the same name are one class."""
    files = {name: source.json(name) for name in source.ending('.json')}
    files = {name: content for name, content in files.items() if _is_coco(content)}
    classes: dict[str, None] = {}
    for name, content in files.items():
        with reading(source.place(name), TITLE):
            classes |= dict.fromkeys(_names(content).values())
    return Annotations(classes, _images(source, files))


def _is_coco(content: Any) -> bool:
    keys = ('images', 'annotations', 'categories')
    return isinstance(content, dict) and all(isinstance(content.get(key), list) for key in keys)


def _names(content: dict) -> dict[int, str]:
    """Returns names by id, without categories that only group others, as Roboflow's first does."""
    used = {each['category_id'] for each in content['annotations']}
    groups = {each.get('supercategory') for each in content['categories']}
    return {
        each['id']: str(each['name'])
        for each in sorted(content['categories'], key=lambda each: each['id'])
        if each['id'] in used
        or each['name'] not in groups
        or each['name'] == each.get('supercategory')
    }


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
        for image in content['images']:
            place = f'{source.place(name)}: {image.get("file_name")}'
            annotations = of_image[image['id']]
            yield attempt(place, TITLE, _image, source, name, image, annotations, names, has_crowds)


def _image(
    source: Source,
    name: str,
    image: dict,
    annotations: list[dict],
    names: dict[int, str],
    has_crowds: bool,
) -> AnnotatedImage:
    size = image['width'], image['height']
    shapes, left_out = [], []
    for annotation in annotations:
        with reading(f'annotation {annotation.get("id")}', TITLE):
            is_crowd = has_crowds and annotation.get('iscrowd')
            label = None if is_crowd else names[annotation['category_id']]
            segmentation = annotation.get('segmentation')
            if not segmentation:
                left_out.append('box')
            elif isinstance(segmentation, dict):
                height, width = segmentation['size']
                if (width, height) != size:
                    expected = f'{size[0]}×{size[1]}, the size of the image'
                    raise UserError('RLE', f'of {width}×{height} pixels', expected)
                counts = segmentation['counts']
                if isinstance(counts, str):
                    counts = coco_counts(counts)
                shapes.append(Shape(label, mask=mask_of_runs(counts, (width, height), 'F')))
            else:  # parts of an object, which may overlap
                shapes += [Shape(label, [polygon(part)]) for part in segmentation]
    return AnnotatedImage(source.beside(name, image['file_name']), size, shapes, left_out=left_out)
