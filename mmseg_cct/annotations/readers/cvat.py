"""CVAT for images 1.1: the XML of a job, a task or a project, alone or in a ZIP."""

import re
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from PIL import ImageColor

from mmseg_cct.errors import UserError

from ..class_table import class_name
from ..rle import mask_of_runs
from ..shapes import AnnotatedImage, Annotations, Colour, Shape
from ..source import Source, reading
from .geometry import box, ellipse, points_of, region

TITLE = 'CVAT for images 1.1'
_NO_REGIONS = 'polyline', 'points', 'skeleton'


def files(source: Source) -> list[str]:
    """Finds the XMLs if one begins with `annotations`."""
    names = source.ending('.xml')
    return names if any(b'<annotations' in source.read(name)[:500] for name in names) else []


def read(source: Source) -> Annotations:
    """Reads all XML files; labels with the same name are one class."""
    classes: dict[str, Colour | None] = {}
    images = []
    for name in files(source):
        place = source.place(name)
        with reading(place):
            root = ElementTree.fromstring(source.read(name))
            if root.tag != 'annotations' or root.find('track') is not None:
                found = 'tracks of a video' if root.tag == 'annotations' else f'<{root.tag}>'
                raise UserError('XML', found, f'an export as {TITLE}')
            for label in root.findall('meta//labels/label'):
                # the points of a skeleton have a parent, and a tag says something of whole images
                if not label.findtext('parent') and label.findtext('type') != 'tag':
                    text, colour = label.findtext('color'), None
                    if text:
                        red, green, blue, *_ = ImageColor.getrgb(text)
                        colour = red, green, blue
                    classes[class_name(label.findtext('name'))] = colour
            for image in root.iter('image'):
                of = image.attrib
                size = int(of['width']), int(of['height'])
                place_of = f'{place}: {of["name"]}'
                images.append(AnnotatedImage(of['name'], size, _parts(image), place_of))
    return Annotations(classes, images)


def _parts(image: Element) -> Iterator[Shape]:
    for number, element in enumerate(image):
        if element.tag != 'tag':  # which lies nowhere
            with reading(f'{element.tag} {number}'):
                yield _part(element)


def _part(element: Element) -> Shape:
    kind, of = element.tag, element.attrib
    label, z = class_name(of['label']), int(of.get('z_order', 0))
    if kind == 'mask':
        left, top, width, height = (int(of[key]) for key in ('left', 'top', 'width', 'height'))
        counts = [int(number) for number in of['rle'].split(',')]
        mask = mask_of_runs(counts, (width, height), 'C')
        return Shape(label, mask=mask, offset=(left, top), z=z)
    turn = float(of.get('rotation', 0))
    # a skeleton lies where its points do
    texts = ';'.join(each.get('points', '') for each in element.iter())
    points = points_of(re.findall(r'[^,;\s]+', texts))
    if kind == 'polygon':
        ring = points
    elif kind == 'box':
        x0, y0, x1, y1 = (float(of[key]) for key in ('xtl', 'ytl', 'xbr', 'ybr'))
        ring = box((x0, y0), (x1, y1), turn)
    elif kind == 'ellipse':
        x, y, *radii = (float(of[key]) for key in ('cx', 'cy', 'rx', 'ry'))
        ring = ellipse((x, y), radii, turn)
    elif kind in _NO_REGIONS:
        return Shape(label, [points], left_out=kind)
    else:
        raise UserError('shape', 'of unknown type', f'one of those of {TITLE}')
    return region(label, ring, z=z, is_box=kind == 'box' and not turn)
