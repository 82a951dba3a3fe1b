"""CVAT for images 1.1: the XML of a job, a task or a project, alone or in a ZIP."""

import re
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from PIL import ImageColor

from mmseg_cct.errors import UserError

from ..class_table import class_name
from ..rle import mask_of_runs
from ..shapes import AnnotatedImage, Annotations, Color, Shape, box, ellipse, points_of, region
from ..source import Source, reading

TITLE = 'CVAT for images 1.1'
_NO_REGIONS = 'polyline', 'points', 'skeleton'


def files(source: Source) -> list[str]:
    """Finds the XMLs if one begins with `annotations`."""
    names = source.ending('.xml')
    return names if any(b'<annotations' in source.read(name)[:500] for name in names) else []


def read(source: Source) -> Annotations:
    """Reads all XML files; labels with the same name are one class."""
    classes: dict[str, Color | None] = {}
    images = []
    for file in files(source):
        location = source.location(file)
        with reading(location):
            root = ElementTree.fromstring(source.read(file))
            if root.tag != 'annotations' or root.find('track') is not None:
                problem = 'tracks of a video' if root.tag == 'annotations' else f'<{root.tag}>'
                raise UserError('XML', problem, f'an export as {TITLE}')
            for label in root.findall('meta//labels/label'):
                # the points of a skeleton have a parent, and a tag says something of whole images
                if not label.findtext('parent') and label.findtext('type') != 'tag':
                    text, color = label.findtext('color'), None
                    if text:
                        red, green, blue, *_ = ImageColor.getrgb(text)
                        color = red, green, blue
                    classes[class_name(label.findtext('name'))] = color
            for image in root.iter('image'):
                name = image.attrib['name']
                size = int(image.attrib['width']), int(image.attrib['height'])
                parts, subset = _parts(image), image.get('subset', '')
                images.append(
                    AnnotatedImage(name, size, parts, f'{location}: {name}', subset=subset)
                )
    return Annotations(classes, images)


def _parts(image: Element) -> Iterator[Shape]:
    for number, element in enumerate(image):
        if element.tag != 'tag':  # which lies nowhere
            with reading(f'{element.tag} {number}'):
                yield _part(element)


def _part(element: Element) -> Shape:
    tag, attributes = element.tag, element.attrib
    label, z = class_name(attributes['label']), int(attributes.get('z_order', 0))
    if tag == 'mask':
        left, top, width, height = (int(attributes[k]) for k in ('left', 'top', 'width', 'height'))
        counts = [int(number) for number in attributes['rle'].split(',')]
        mask = mask_of_runs(counts, (width, height), 'C')
        return Shape(label, mask=mask, offset=(left, top), z=z)
    degrees = float(attributes.get('rotation', 0))
    # a skeleton lies where its points do
    texts = ';'.join(inner.get('points', '') for inner in element.iter())
    points = points_of(re.findall(r'[^,;\s]+', texts))
    if tag == 'polygon':
        ring = points
    elif tag == 'box':
        x0, y0, x1, y1 = (float(attributes[key]) for key in ('xtl', 'ytl', 'xbr', 'ybr'))
        ring = box((x0, y0), (x1, y1), degrees)
    elif tag == 'ellipse':
        x, y, *radii = (float(attributes[key]) for key in ('cx', 'cy', 'rx', 'ry'))
        ring = ellipse((x, y), radii, degrees)
    elif tag in _NO_REGIONS:
        return Shape(label, [points], left_out=tag)
    else:
        raise UserError('shape', 'of unknown type', f'one of those of {TITLE}')
    return region(label, ring, z=z, is_box=tag == 'box' and not degrees)
