"""CVAT's "Segmentation mask 1.1": coloured PNGs, laid out as in VOC, and `labelmap.txt`."""

import posixpath
from collections.abc import Iterator, Mapping

import numpy as np
from PIL import Image

from mmseg_cct.datasets.files.labels import is_background, means_ignored
from mmseg_cct.errors import UserError

from ..class_table import class_name
from ..pictures import TRANSPARENT, code_of, colour_of, open_picture, packed_colours
from ..shapes import AnnotatedImage, Annotations, Colour, Shape
from ..source import Source, attempt, reading

TITLE = 'Segmentation mask 1.1'
_TABLE = 'labelmap.txt'
_FOLDER = 'SegmentationClass'
VOID = (224, 224, 192)  # the colour of VOC's ignored pixels
_BLACK = (0, 0, 0)  # the colour of what is not drawn, unless another class than background has it
_IGNORED = ''

Meanings = Mapping[int, str | None]  # a class, `_IGNORED`, or None for what is not drawn


def files(source: Source) -> list[str]:
    """Finds class masks, if there is a table of their colours."""
    is_in = source.path.name == _FOLDER
    masks = [name for name in source.ending('.png') if is_in or _FOLDER in name.split('/')[:-1]]
    return masks if source.ending(_TABLE) else []


def read(source: Source) -> Annotations:
    """Reads the masks; black background counts as not drawn: the tool writes both the same."""
    name = source.ending(_TABLE)[0]
    with reading(source.place(name)):
        colours = _colours(source.read(name).decode('utf-8-sig'))
    require_distinct(colours)
    meanings: dict[str, str | None] = {label: label for label in colours}
    for label, colour in colours.items():
        if colour == VOID and means_ignored(label):
            meanings[label] = _IGNORED
        elif colour == _BLACK and is_background(label):
            meanings[label] = None
    classes = {label: colours[label] for label, meaning in meanings.items() if meaning}
    by_colour = {0: None, TRANSPARENT: None, code_of(VOID): _IGNORED}
    by_colour |= {code_of(colours[label]): meaning for label, meaning in meanings.items()}
    images = (attempt(source.place(n), _image, source, n, by_colour) for n in files(source))
    return Annotations(classes, images)


def require_distinct(colours: Mapping[str, Colour]) -> None:
    """Raises an error if two classes have one colour: a mask does not tell which it means."""
    owners: dict[Colour, str] = {}
    for label, colour in colours.items():
        if (other := owners.setdefault(colour, label)) != label:
            found = f'have the same colour {colour_of(code_of(colour))}'
            raise UserError(f'classes {other} and {label}', found)


def _colours(text: str) -> dict[str, Colour]:
    """Reads lines of `label:r,g,b:parts:actions`; without any colour they are VOC's."""
    lines = [line.split(':') for line in text.splitlines() if line.strip() and line[0] != '#']
    has_colours = any(colour for _, colour, *_ in lines)  # Datumaro leaves them out
    colours = {}
    for index, (label, colour, *_) in enumerate(lines):
        if has_colours:
            red, green, blue = map(int, colour.split(','))
        else:  # the bits of the id, spread over the channels from the top
            red, green, blue = (
                sum((index >> 3 * bit + channel & 1) << 7 - bit for bit in range(3))
                for channel in range(3)
            )
        colours[class_name(label)] = (red, green, blue)
    return colours


def _image(source: Source, name: str, by_colour: Meanings) -> AnnotatedImage:
    _, _, image = f'/{_FOLDER}/{posixpath.splitext(name)[0]}'.rpartition(f'/{_FOLDER}/')
    picture = open_picture(source.read(name))
    return AnnotatedImage(image, picture.size, _parts(picture, by_colour), source.place(name))


def _parts(picture: Image.Image, by_colour: Meanings) -> Iterator[Shape]:
    codes = packed_colours(picture)
    for code in np.unique(codes).tolist():
        if code not in by_colour:
            raise UserError(f'colour {colour_of(code)}', '', f'those of {_TABLE}')
        if (label := by_colour[code]) is not None:
            yield Shape.of_mask(label or None, codes == code)
