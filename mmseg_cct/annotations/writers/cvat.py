"""CVAT for images 1.1: one XML with polygons, and masks for regions with holes."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ..contours import TracedImage
from ..rle import runs_of_mask
from ..shapes import Colour, Shape
from .own_files import OwnFiles

# A `z_order` says what lies on top.
TRACING = dict(stacked=True)


def write(
    files: OwnFiles, classes: Mapping[str, Colour], images: Iterable[TracedImage], folder: Path
) -> None:
    """Writes `cvat.xml`, image by image."""
    with files.open('cvat.xml') as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n')
        file.write('  <version>1.1</version>\n')
        file.write(_text(_labels(classes)))
        for index, image in enumerate(images):
            file.write(_text(_image(index, image)))
        file.write('</annotations>\n')


def _text(element: Element) -> str:
    indent(element, level=1)
    return f'  {tostring(element, encoding="unicode").rstrip()}\n'


def _labels(classes: Mapping[str, Colour]) -> Element:
    meta = Element('meta')
    labels = SubElement(SubElement(meta, 'task'), 'labels')
    for name, colour in classes.items():
        label = SubElement(labels, 'label')
        SubElement(label, 'name').text = name
        SubElement(label, 'color').text = '#{:02x}{:02x}{:02x}'.format(*colour)
        SubElement(label, 'attributes')
    return meta


def _image(index: int, image: TracedImage) -> Element:
    width, height = map(str, image.size)
    element = Element('image', id=str(index), name=image.name, width=width, height=height)
    for shape in image.shapes:
        _add(element, shape)
    return element


def _add(image: Element, shape: Shape) -> None:
    common = dict(label=str(shape.label), source='auto', occluded='0', z_order=str(shape.z))
    if shape.mask is None:
        points = ';'.join(f'{x:g},{y:g}' for x, y in shape.polygons[0].tolist())
        SubElement(image, 'polygon', common, points=points)
        return
    (left, top), (height, width) = shape.offset, shape.mask.shape
    place = dict(left=left, top=top, width=width, height=height)
    runs = ', '.join(map(str, runs_of_mask(shape.mask, 'C')))
    SubElement(image, 'mask', common, rle=runs, **{key: str(of) for key, of in place.items()})
