"""CVAT for images 1.1: the XML of a job, a task or a project, alone or in a ZIP."""

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

import numpy as np

from mmseg_cct.errors import UserError

from ..rle import mask_of_runs
from ..shapes import AnnotatedImage, Annotations, Colour, LeftOut, Shape
from ..source import Source, attempt, read_part, reading
from .geometry import box, colour, ellipse, extent_of, polygon, region

TITLE = 'CVAT for images 1.1'
# Of boxes, then of cuboids
_CORNERS = 'tl', 'br', *(f'{corner}{face}' for face in '12' for corner in ('tl', 'tr', 'br', 'bl'))


def is_mine(source: Source) -> bool:
    """Whether an XML begins with `annotations`."""
    return any('<annotations' in source.text(name)[:500] for name in source.ending('.xml')[:1])


def read(source: Source) -> Annotations:
    """Reads all XML files; labels with the same name are one class."""
    classes: dict[str, Colour | None] = {}
    roots = {}
    for name in source.ending('.xml'):
        root = source.xml(name)
        with reading(source.place(name), TITLE):
            if root.tag != 'annotations' or root.find('track') is not None:
                found = 'tracks of a video' if root.tag == 'annotations' else f'<{root.tag}>'
                raise UserError('XML', found, f'an export as {TITLE}')
            for label in root.findall('meta//labels/label'):
                if not label.findtext('parent'):  # the points of a skeleton have one
                    classes[label.findtext('name', '')] = colour(label.findtext('color'))
        roots[name] = root
    return Annotations(classes, _images(source, roots))


def _images(source: Source, roots: dict[str, Element]) -> Iterator[AnnotatedImage | UserError]:
    for name, root in roots.items():
        for image in root.iter('image'):
            yield attempt(f'{source.place(name)}: {image.get("name")}', TITLE, _image, image)


def _image(image: Element) -> AnnotatedImage:
    parts = [
        read_part(f'{each.tag} {each.get("label")}', TITLE, _left_out(each), _shape, each)
        for each in image
    ]
    size = int(image.attrib['width']), int(image.attrib['height'])
    return AnnotatedImage(image.attrib['name'], size, parts)


def _left_out(element: Element) -> LeftOut:
    """Describes an element that is no region; a skeleton lies where its points do."""
    points = re.findall(r'[-+.\d]+', ';'.join(each.get('points', '') for each in element.iter()))
    corners = [(element.get(f'x{at}'), element.get(f'y{at}')) for at in _CORNERS]
    extent = extent_of(points or [corner for corner in corners if None not in corner])
    if element.tag == 'mask':
        sides = [float(element.get(key, 'nan')) for key in ('left', 'top', 'width', 'height')]
        extent = extent_of([sides[:2], np.add(sides[:2], sides[2:])])
    return LeftOut(element.tag, extent, element.get('label'), element.get('group_id'))


def _shape(element: Element) -> Shape | LeftOut | None:
    """Makes a shape; returns None for lines, points and tags."""
    kind, of = element.tag, element.attrib
    label, z, group = of.get('label'), int(of.get('z_order', 0)), of.get('group_id')
    if kind == 'mask':
        left, top, width, height = (int(of[key]) for key in ('left', 'top', 'width', 'height'))
        counts = [int(number) for number in of['rle'].split(',')]
        mask = mask_of_runs(counts, (width, height), 'C')
        return Shape(label, mask=mask, offset=(left, top), z=z, group=group)
    turn = float(of.get('rotation', 0))

    def pair(x: str, y: str) -> tuple[float, float]:
        return float(of[x]), float(of[y])

    if kind == 'polygon':
        ring = polygon(re.findall(r'[^,;\s]+', of['points']))
    elif kind == 'box':
        ring = box(pair('xtl', 'ytl'), pair('xbr', 'ybr'), turn)
    elif kind == 'ellipse':
        ring = ellipse(pair('cx', 'cy'), pair('rx', 'ry'), turn)
    else:
        return None
    is_box = kind == 'box' and not turn
    return region(label, ring, z=z, is_box=is_box, group=group)
