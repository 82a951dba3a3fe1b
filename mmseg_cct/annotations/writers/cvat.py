"""CVAT for images 1.1: one XML with polygons, and masks for regions with holes.

Its labels are in a file of their own, too, for the field Raw of a new task.
"""

import json
from xml.sax.saxutils import escape, quoteattr

from ..rle import runs_of_mask
from ..shapes import Shape
from .output import Export

_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n'


def write(export: Export) -> None:
    """Writes `labels_for_cvat.json`, and `cvat.xml` image by image."""
    labels = [dict(name=n, color=f'#{bytes(c).hex()}') for n, c in export.classes.items()]
    with export.open('labels_for_cvat.json') as file:
        json.dump(labels, file, ensure_ascii=False, indent=1)
    with export.open('cvat.xml') as file:
        file.write(f'{_HEAD}  <meta>\n    <task>\n      <labels>\n')
        for name, color in export.classes.items():
            described = f'<name>{escape(name)}</name><color>#{bytes(color).hex()}</color>'
            file.write(f'        <label>{described}<attributes/></label>\n')
        file.write('      </labels>\n    </task>\n  </meta>\n')
        for index, image in enumerate(export.images):
            size = 'width="{}" height="{}"'.format(*image.size)
            file.write(f'  <image id="{index}" name={quoteattr(image.name)} {size}>\n')
            file.writelines(f'    {_element(shape)}\n' for shape in image.shapes)
            file.write('  </image>\n')
        file.write('</annotations>\n')


def _element(shape: Shape) -> str:
    label = quoteattr(str(shape.label))
    attributes = f'label={label} source="auto" occluded="0" z_order="{shape.z}"'
    if shape.mask is None:
        points = ';'.join(f'{x:g},{y:g}' for x, y in shape.polygons[0].tolist())
        return f'<polygon {attributes} points="{points}"/>'
    (left, top), (height, width) = shape.offset, shape.mask.shape
    extent = f'left="{left}" top="{top}" width="{width}" height="{height}"'
    runs = ', '.join(map(str, runs_of_mask(shape.mask, 'C')))
    return f'<mask {attributes} rle="{runs}" {extent}/>'
