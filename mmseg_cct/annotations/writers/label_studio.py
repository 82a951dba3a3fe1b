"""Label Studio: a JSON of tasks with predictions, and the labels' set-up as XML.

Regions are polygons, or brushes if they have holes.
"""

import json
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from ..rasterize import draw_whole
from ..rle import brush_of_mask
from ..shapes import Shape
from .output import Export


def write(export: Export) -> None:
    """Writes `label_studio.json`, image by image, and `label_studio.xml`.

    The tasks address their images as files of a local storage, relative to its root.
    """
    with export.open('label_studio.xml') as file:
        file.write('<View>\n  <Image name="image" value="$image" zoom="true"/>\n')
        # The names are those that `_region` gives: a region names the control that made it
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
            result = [_region(index, shape, image.size) for index, shape in enumerate(image.shapes)]
            data = dict(image=f'/data/local-files/?d={quote(image.name)}')
            predictions = [dict(model_version='mmseg_cct', result=result)]
            task = dict(data=data, predictions=predictions)
            file.write(',\n' if image_index else '\n')
            json.dump(task, file, ensure_ascii=False)
        file.write('\n]\n')


def _region(index: int, shape: Shape, size: tuple[int, int]) -> dict[str, Any]:
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
