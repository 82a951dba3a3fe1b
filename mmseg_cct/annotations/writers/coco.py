"""COCO: one JSON with polygons, and run lengths for regions with holes."""

import json
from typing import Any

import numpy as np

from ..rasterize import draw, draw_whole
from ..rle import runs_of_mask
from ..shapes import Shape
from .output import Export


def write(export: Export) -> None:
    """Writes `coco.json`, image by image."""
    ids = {name: index for index, name in enumerate(export.classes, 1)}
    images: list[dict[str, Any]] = []
    num_shapes = 0
    with export.open('coco.json') as file:
        file.write('{"annotations": [')
        for image in export.images:
            width, height = image.size
            size = dict(width=width, height=height)
            images.append(dict(id=len(images) + 1, file_name=image.name, **size))
            for shape in image.shapes:
                file.write(',\n' if num_shapes else '\n')
                num_shapes += 1
                annotation = dict(
                    id=num_shapes,
                    image_id=images[-1]['id'],
                    category_id=ids[str(shape.label)],
                    iscrowd=0,  # also for RLE: tools leave out crowds
                    **_region(shape, image.size),
                )
                json.dump(annotation, file)
        categories = [dict(id=i, name=name, supercategory='') for name, i in ids.items()]
        header = dict(images=images, categories=categories)
        file.write(f'\n],\n{json.dumps(header, ensure_ascii=False)[1:]}\n')


def _region(shape: Shape, size: tuple[int, int]) -> dict[str, Any]:
    inside, (left, top) = draw(shape, size)
    segmentation: Any
    if shape.mask is None:
        ring = shape.polygons[0]
        (left, top), (width, height) = ring.min(0).tolist(), np.ptp(ring, 0).tolist()
        segmentation = [ring.reshape(-1).tolist()]
    else:
        height, width = inside.shape
        runs = runs_of_mask(draw_whole(shape, size), 'F')
        segmentation = dict(size=list(size[::-1]), counts=runs)
    area = int(inside.sum())
    return dict(segmentation=segmentation, area=area, bbox=[left, top, width, height])
