"""Masks beside a table of their colours: Roboflow's `_classes.csv`, CamVid's `label_colors.txt`."""

import csv
import posixpath
import re

from mmseg_cct.errors import UserError

from ..shapes import Annotations, Colour
from ..source import Source, class_name, reading
from .plain_masks import read_colours

TITLE = 'masks with _classes.csv or label_colors.txt'
_GREYS, _COLOURS = '_classes.csv', 'label_colors.txt'
# Roboflow: NAME_mask.png beside NAME.jpg. CamVid: NAME_L.png, or as CVAT writes it trainannot/NAME.
_SUFFIX = re.compile(r'_mask\.png$|_L\.png$', re.IGNORECASE)
_FOLDER = re.compile(r'annot(?=/[^/]*$)')


def is_mine(source: Source) -> str:
    """Finds a table; empty if there is none."""
    return next(iter(_tables(source)), '')


def _tables(source: Source) -> list[str]:
    return [each for each in source.names if posixpath.basename(each) in (_GREYS, _COLOURS)]


def read(source: Source) -> Annotations:
    """Reads all masks by the table; the tables of several folders must be equal."""
    first, *others = _tables(source)
    colours = _colours(source, first)
    for other in others:
        if _colours(source, other) != colours:
            raise UserError(source.place(other), f'differs from {first}', 'one folder at a time')
    masks = {name: end[0] for name in source.ending('.png') if (end := _SUFFIX.search(name))}
    masks |= {name: '.png' for name in source.ending('.png') if _FOLDER.search(name)}
    images = {mask: _FOLDER.sub('', mask[: -len(end)]) for mask, end in masks.items()}
    if not images:
        found = 'no mask such as NAME_mask.png, NAME_L.png or trainannot/NAME.png'
        raise UserError(str(source.path), found, '--colors and --mask-suffix')
    return read_colours(source, colours, images, is_strict=False)


def _colours(source: Source, name: str) -> dict[str, Colour]:
    with reading(source.place(name)):
        colours: dict[str, Colour] = {}
        lines = source.text(name).splitlines()
        if name.endswith(_GREYS):  # Pixel Value, Class
            rows = [[row[0]] * 3 + row[1:] for row in csv.reader(lines[1:]) if row]
        else:
            rows = [line.split(maxsplit=3) for line in lines if line.strip() and line[0] != '#']
        for red, green, blue, label in rows:
            colours[class_name(label)] = (int(red), int(green), int(blue))
        if len(colours) < len(rows):
            raise UserError('classes', 'a name is there twice', 'every name once')
        return colours
