"""CVAT for images 1.1: the XML of a job, a task or a project, alone or in a ZIP."""

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from mmseg_cct.errors import UserError

from ..class_table import class_name
from ..rle import mask_of_runs
from ..shapes import AnnotatedImage, Annotations, Colour, LeftOut, Shape
from ..source import Source, attempt, reading
from .geometry import box, colour, ellipse, points_of, region

TITLE = 'CVAT for images 1.1'
_NO_REGIONS = 'polyline', 'points', 'skeleton'


def is_mine(source: Source) -> str:
    """Finds an XML that begins with `annotations`; empty if there is none."""
    files = source.ending('.xml')
    return next((name for name in files if b'<annotations' in source.read(name)[:500]), '')


def read(source: Source) -> Annotations:
    """Reads all XML files; labels with the same name are one class."""
    classes: dict[str, Colour | None] = {}
    roots = {}
    for name in source.ending('.xml'):
        root = source.xml(name)
        with reading(source.place(name)):
            if root.tag != 'annotations' or root.find('track') is not None:
                found = 'tracks of a video' if root.tag == 'annotations' else f'<{root.tag}>'
                raise UserError('XML', found, f'an export as {TITLE}')
            for label in root.findall('meta//labels/label'):
                # the points of a skeleton have a parent, and a tag says something of whole images
                if not label.findtext('parent') and label.findtext('type') != 'tag':
                    classes[class_name(label.findtext('name'))] = colour(label.findtext('color'))
        roots[name] = root
    images = (
        attempt(f'{source.place(name)}: {image.get("name")}', _image, image, source.place(name))
        for name, root in roots.items()
        for image in root.iter('image')
    )
    return Annotations(classes, images)


def _image(image: Element, place: str) -> AnnotatedImage:
    name, size = image.attrib['name'], (int(image.attrib['width']), int(image.attrib['height']))
    return AnnotatedImage(name, size, _parts(image), f'{place}: {name}')


def _parts(image: Element) -> Iterator[Shape | LeftOut]:
    for number, element in enumerate(image):
        if element.tag != 'tag':  # which lies nowhere
            with reading(f'{element.tag} {number}'):
                yield _part(element)


def _part(element: Element) -> Shape | LeftOut:
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
        return LeftOut(kind, points, label)
    else:
        raise UserError('shape', 'of unknown type', f'one of those of {TITLE}')
    return region(label, ring, z=z, is_box=kind == 'box' and not turn)
