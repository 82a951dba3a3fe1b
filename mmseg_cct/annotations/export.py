"""Exports masks of class ids as annotations that a labelling tool opens.

Each format is a function that writes the annotations of an `Export`, image by image.
"""

import base64
import filecmp
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from PIL import Image

from mmseg_cct.datasets.files.images import read_mask
from mmseg_cct.datasets.files.labels import is_background
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import part_of

from . import FORMATS
from .contours import TracedImage, trace_shapes
from .drawing import draw, draw_whole
from .rle import brush_of_mask, runs_of_mask
from .shapes import Color, Shape

_LABELME = 'labelme'  # its folder
_CVAT_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n'


class Export(NamedTuple):
    """What a format writes."""

    out: Path  # the folder, which may be missing
    classes: Mapping[str, Color]
    images: Iterable[TracedImage]  # in one pass
    folder: Path  # the image files are below it

    @contextmanager
    def open(self, name: str) -> Iterator[TextIO]:
        """Opens a text file for writing; it appears only once it is complete.

        Raises:
            UserError: If it exists with other contents, which somebody may have edited.
        """
        path = self.out / name
        with part_of(path) as part:
            with part.open('w', encoding='utf-8', errors='backslashreplace', newline='\n') as file:
                yield file
            # A second run may write the same again: a stopped one left some of the files.
            if path.exists() and not filecmp.cmp(part, path, shallow=False):
                problem = 'exists with other contents, perhaps corrected: remove it or change --out'
                raise UserError(path, problem)


def export_masks(
    export_format: str,
    out: str | Path,
    masks: Mapping[str, Path],
    classes: Mapping[str, Color],
    folder: str | Path,
    *,
    background: bool = False,
    tolerance: float = 1.0,
    min_area: int = 10,
    progress: Callable[[], object] = lambda: None,
) -> None:
    """Writes masks in one of `FORMATS`.

    `masks` holds the mask of each image by the image's path relative to `folder`; ids are in the
    order of `classes`. Without `background`, undrawn pixels are the background class; with it, that
    class is drawn and undrawn pixels are to be ignored. Outlines move by up to `tolerance` pixels,
    and regions of fewer pixels than `min_area` become part of their surroundings. `progress` is
    called after each image.

    Raises:
        UserError: If one of the files exists with other contents.
    """
    names = list(classes)
    undrawn_name = None if background else next(filter(is_background, names), None)
    undrawn = names.index(undrawn_name) if undrawn_name else None
    # Each annotation of COCO covers its own pixels alone; the others say what lies on top.
    stacked = export_format != 'coco'

    def traced() -> Iterator[TracedImage]:
        for name, path in masks.items():
            labels = read_mask(path)
            shapes = trace_shapes(
                labels, names,
                tolerance=tolerance, min_area=min_area, undrawn=undrawn, stacked=stacked,
            )  # fmt: skip
            yield TracedImage(name, labels.shape[::-1], shapes)
            progress()

    WRITERS[export_format](Export(Path(out), classes, traced(), Path(folder)))


def _write_coco(export: Export) -> None:
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
                    **_coco_region(shape, image.size),
                )
                json.dump(annotation, file)
        categories = [dict(id=i, name=name, supercategory='') for name, i in ids.items()]
        header = dict(images=images, categories=categories)
        file.write(f'\n],\n{json.dumps(header, ensure_ascii=False)[1:]}\n')


def _coco_region(shape: Shape, size: tuple[int, int]) -> dict[str, Any]:
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


def _write_cvat(export: Export) -> None:
    """Writes `labels_for_cvat.json`, and `cvat.xml` image by image."""
    labels = [dict(name=n, color=f'#{bytes(c).hex()}') for n, c in export.classes.items()]
    with export.open('labels_for_cvat.json') as file:
        json.dump(labels, file, ensure_ascii=False, indent=1)
    with export.open('cvat.xml') as file:
        file.write(f'{_CVAT_HEAD}  <meta>\n    <task>\n      <labels>\n')
        for name, color in export.classes.items():
            described = f'<name>{escape(name)}</name><color>#{bytes(color).hex()}</color>'
            file.write(f'        <label>{described}<attributes/></label>\n')
        file.write('      </labels>\n    </task>\n  </meta>\n')
        for index, image in enumerate(export.images):
            size = 'width="{}" height="{}"'.format(*image.size)
            file.write(f'  <image id="{index}" name={quoteattr(image.name)} {size}>\n')
            file.writelines(f'    {_cvat_element(shape)}\n' for shape in image.shapes)
            file.write('  </image>\n')
        file.write('</annotations>\n')


def _cvat_element(shape: Shape) -> str:
    label = quoteattr(str(shape.label))
    attributes = f'label={label} source="auto" occluded="0" z_order="{shape.z}"'
    if shape.mask is None:
        points = ';'.join(f'{x:g},{y:g}' for x, y in shape.polygons[0].tolist())
        return f'<polygon {attributes} points="{points}"/>'
    (left, top), (height, width) = shape.offset, shape.mask.shape
    extent = f'left="{left}" top="{top}" width="{width}" height="{height}"'
    runs = ', '.join(map(str, runs_of_mask(shape.mask, 'C')))
    return f'<mask {attributes} rle="{runs}" {extent}/>'


def _write_labelme(export: Export) -> None:
    """Writes `labelme/labels.txt`, and `labelme/NAME.json` with the path of each image."""
    if export.classes:  # labelme would allow no other class
        with export.open(f'{_LABELME}/labels.txt') as file:
            file.writelines(f'{name}\n' for name in export.classes)
    for image in export.images:
        name = Path(_LABELME, image.name).with_suffix('.json')
        width, height = image.size
        folder, shapes = export.out.resolve() / name.parent, list(map(_labelme_shape, image.shapes))
        content: dict[str, Any] = dict(
            version='5.5.0',
            flags={},
            shapes=shapes,
            imagePath=os.path.relpath(export.folder.resolve() / image.name, folder),
            imageData=None,
            imageHeight=height,
            imageWidth=width,
        )
        with export.open(name.as_posix()) as file:
            json.dump(content, file, ensure_ascii=False)


def _labelme_shape(shape: Shape) -> dict[str, Any]:
    if shape.mask is None:
        geometry = dict(points=shape.polygons[0].tolist(), shape_type='polygon', mask=None)
    else:
        buffer = io.BytesIO()
        Image.fromarray(shape.mask).save(buffer, format='PNG')
        first = np.array(shape.offset)
        # labelme counts both corner pixels, as the first and last of a range
        last = first + shape.mask.shape[::-1] - 1
        geometry = dict(points=[first.tolist(), last.tolist()], shape_type='mask')
        geometry['mask'] = base64.b64encode(buffer.getvalue()).decode()
    return dict(label=shape.label, group_id=None, description='', flags={}, **geometry)


def _write_label_studio(export: Export) -> None:
    """Writes `label_studio.json`, image by image, and `label_studio.xml`.

    The tasks address their images as files of a local storage, relative to its root.
    """
    with export.open('label_studio.xml') as file:
        file.write('<View>\n  <Image name="image" value="$image" zoom="true"/>\n')
        # A region names the control that made it
        for tag, control in (('PolygonLabels', 'polygon'), ('BrushLabels', 'brush')):
            file.write(f'  <{tag} name="{control}" toName="image">\n')
            for name, color in export.classes.items():
                shown = f'value={quoteattr(name)} background="#{bytes(color).hex()}"'
                file.write(f'    <Label {shown}/>\n')
            file.write(f'  </{tag}>\n')
        file.write('</View>\n')
    with export.open('label_studio.json') as file:
        file.write('[')
        for image_index, image in enumerate(export.images):
            result = [
                _label_studio_region(index, shape, image.size)
                for index, shape in enumerate(image.shapes)
            ]
            data = dict(image=f'/data/local-files/?d={quote(image.name)}')
            predictions = [dict(model_version='mmseg_cct', result=result)]
            task = dict(data=data, predictions=predictions)
            file.write(',\n' if image_index else '\n')
            json.dump(task, file, ensure_ascii=False)
        file.write('\n]\n')


def _label_studio_region(index: int, shape: Shape, size: tuple[int, int]) -> dict[str, Any]:
    width, height = size
    value: dict[str, Any]
    if shape.mask is None:
        control = 'polygon'
        percent = (shape.polygons[0] / size * 100).round(6)
        value = dict(points=percent.tolist(), closed=True)
    else:
        control = 'brush'
        value = dict(format='rle', rle=brush_of_mask(draw_whole(shape, size)))
    names = dict(type=f'{control}labels', from_name=control, to_name='image')
    sides = dict(original_width=width, original_height=height, image_rotation=0)
    value = {**value, f'{control}labels': [shape.label]}
    return dict(id=f'r{index}', **names, **sides, value=value)


WRITERS = dict(
    zip(FORMATS, (_write_coco, _write_cvat, _write_labelme, _write_label_studio), strict=True)
)
