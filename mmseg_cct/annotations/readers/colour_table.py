"""Masks beside a table of their colours: Roboflow's `_classes.csv`, CamVid's `label_colors.txt`."""

import csv
import posixpath
import re

from mmseg_cct.datasets.files.labels import BACKGROUND, is_background
from mmseg_cct.errors import UserError

from ..class_table import class_name
from ..shapes import Annotations, Colour
from ..source import Source, reading
from .plain_masks import read_colours
from .segmentation_mask import voc_colour

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
        lines = [line for line in source.text(name).splitlines() if line.strip() and line[0] != '#']
        if name.endswith(_GREYS):  # Pixel Value, Class
            rows = [[row[0]] * 3 + row[1:] for row in csv.reader(lines[1:])]
        else:
            rows = [line.split(maxsplit=3) for line in lines]
        if not any(row[0].isdecimal() for row in rows):  # Datumaro takes VOC's colours then
            names = [BACKGROUND, *(line.strip() for line in lines if not is_background(line))]
            rows = [[*map(str, voc_colour(index)), name] for index, name in enumerate(names)]
        colours: dict[str, Colour] = {
            class_name(label): (int(red), int(green), int(blue)) for red, green, blue, label in rows
        }
        if len(colours) < len(rows):
            raise UserError('classes', 'a name is there twice', 'every name once')
        return colours
