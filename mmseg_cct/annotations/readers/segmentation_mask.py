"""CVAT's "Segmentation mask 1.1": coloured PNGs, laid out as in VOC, and `labelmap.txt`."""

import posixpath
from collections.abc import Iterator, Mapping

import numpy as np
from PIL import Image

from mmseg_cct.datasets.files.labels import is_background, means_ignored
from mmseg_cct.errors import UserError

from ..class_table import class_name
from ..pictures import TRANSPARENT, color_code, color_text, open_picture, packed_colors
from ..shapes import AnnotatedImage, Annotations, Color, Shape
from ..source import Source, attempt, reading

TITLE = 'Segmentation mask 1.1'
COLOR_TABLE = 'labelmap.txt'
_FOLDER = 'SegmentationClass'
OF_AN_EXPORT = _FOLDER, 'SegmentationObject'  # folders of masks; the second's colours are instances
VOID = (224, 224, 192)  # the colour of VOC's ignored pixels
_BLACK = (0, 0, 0)  # the colour of what is not drawn, unless another class than background has it
_IGNORED = ''

Meanings = Mapping[int, str | None]  # a class, `_IGNORED`, or None for what is not drawn


def files(source: Source) -> list[str]:
    """Finds class masks, if there is a table of their colours."""
    is_in = source.path.name == _FOLDER
    masks = [name for name in source.ending('.png') if is_in or _FOLDER in name.split('/')[:-1]]
    return masks if source.ending(COLOR_TABLE) else []


def read(source: Source) -> Annotations:
    """Reads the masks; black background counts as not drawn: the tool writes both the same."""
    table = source.ending(COLOR_TABLE)[0]
    with reading(source.location(table)):
        colors = _read_colors(source.read(table).decode('utf-8-sig'))
    require_distinct(colors)
    meanings = {0: None, TRANSPARENT: None, color_code(VOID): _IGNORED}
    classes = {}
    for label, color in colors.items():
        is_void = color == VOID and means_ignored(label)
        if not is_void and not (color == _BLACK and is_background(label)):
            classes[label] = color
            meanings[color_code(color)] = label
    subsets: dict[str, str] = {}
    for name in source.ending('.txt'):
        if 'ImageSets' in name.split('/'):
            subsets |= dict.fromkeys(source.read(name).decode('utf-8-sig').splitlines(), name)
    options = meanings, subsets
    images = (attempt(source.location(n), _image, source, n, *options) for n in files(source))
    return Annotations(classes, images)


def require_distinct(colors: Mapping[str, Color]) -> None:
    """Raises an error if two classes have one colour: a mask does not tell which it means."""
    owners: dict[Color, str] = {}
    for label, color in colors.items():
        if (owner := owners.setdefault(color, label)) != label:
            problem = f'have the same colour {color_text(color_code(color))}'
            raise UserError(f'classes {owner} and {label}', problem)


def _read_colors(text: str) -> dict[str, Color]:
    """Reads lines of `label:r,g,b:parts:actions`; without any colour they are VOC's."""
    lines = [line.split(':') for line in text.splitlines() if line.strip() and line[0] != '#']
    has_colors = any(color for _, color, *_ in lines)  # Datumaro leaves them out
    colors = {}
    for index, (label, color, *_) in enumerate(lines):
        if has_colors:
            red, green, blue = map(int, color.split(','))
        else:  # the bits of the id, spread over the channels from the top
            red, green, blue = (
                sum((index >> 3 * bit + channel & 1) << 7 - bit for bit in range(3))
                for channel in range(3)
            )
        colors[class_name(label)] = (red, green, blue)
    return colors


def _image(
    source: Source, name: str, meanings: Meanings, subsets: Mapping[str, str]
) -> AnnotatedImage:
    _, _, image = f'/{_FOLDER}/{posixpath.splitext(name)[0]}'.rpartition(f'/{_FOLDER}/')
    picture = open_picture(source.read(name))
    parts, location = _parts(picture, meanings), source.location(name)
    return AnnotatedImage(image, picture.size, parts, location, subset=subsets.get(image, ''))


def _parts(picture: Image.Image, meanings: Meanings) -> Iterator[Shape]:
    codes = packed_colors(picture)
    for code in np.unique(codes).tolist():
        if code not in meanings:
            raise UserError(f'colour {color_text(code)}', '', f'those of {COLOR_TABLE}')
        if (label := meanings[code]) is not None:
            yield Shape.of_mask(label or None, codes == code)
