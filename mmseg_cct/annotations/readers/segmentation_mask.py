"""CVAT's "Segmentation mask 1.1": coloured PNGs and `labelmap.txt`, laid out as in VOC; and VOC."""

import posixpath
from collections.abc import Mapping

import numpy as np
from mmseg.utils import get_classes

from mmseg_cct.datasets.files.labels import is_background, means_ignored
from mmseg_cct.errors import UserError

from ..pictures import code_of, colour_of, decode, pack
from ..shapes import AnnotatedImage, Annotations, Colour, Shape
from ..source import Source, read_each, reading

TITLE = 'Segmentation mask 1.1'
_TABLE = 'labelmap.txt'
_NAMES = 'class_names.txt'  # of labelme's converter to VOC
_FOLDER = 'SegmentationClass'
VOID = (224, 224, 192)  # the colour of VOC's ignored pixels
_BLACK = (0, 0, 0)  # the colour of what is not drawn, unless another class than background has it
_IGNORED = ''


def is_mine(source: Source) -> bool:
    """Whether there are class masks and a table of their colours, or VOC's palette and layout."""
    if not (masks := _masks(source)):
        return False
    if source.named(_TABLE):
        return True
    picture = decode(source.read(masks[0]))
    palette = (picture.getpalette() or []) if picture.mode == 'P' else []
    voc = [part for index in range(21) for part in _voc_colour(index)]
    has_names = source.named(_NAMES) or any('JPEGImages' in name for name in source.names)
    return bool(has_names) and palette[:63] == voc


def read(source: Source) -> Annotations:
    """Reads the masks; black background counts as not drawn: the tool writes both the same."""
    if name := source.named(_TABLE):
        with reading(source.place(name), TITLE):
            colours = _colours(source.text(name))
    else:
        name = source.named(_NAMES)
        names = source.text(name).splitlines() if name else get_classes('voc')
        names = [label.strip() for label in names if label.strip() not in ('', '__ignore__')]
        colours = {label: _voc_colour(index) for index, label in enumerate(names)}
    require_distinct(colours)
    meanings = {label: _meaning(label, colour) for label, colour in colours.items()}
    classes = {label: colours[label] for label, meaning in meanings.items() if meaning}
    by_colour = {0: None, code_of(VOID): _IGNORED}
    by_colour |= {code_of(colours[label]): meaning for label, meaning in meanings.items()}
    by_id = dict(enumerate(meanings.values())) | {255: _IGNORED}
    images = read_each(source, _masks(source), TITLE, _image, by_colour, by_id)
    return Annotations(classes, images)


def require_distinct(colours: Mapping[str, Colour]) -> None:
    """Raises an error if two classes have one colour: a mask does not tell which it means."""
    owners: dict[Colour, str] = {}
    for label, colour in colours.items():
        if (other := owners.setdefault(colour, label)) != label:
            found = f'both of colour {colour_of(code_of(colour))}'
            raise UserError(f'classes {other} and {label}', found, 'a colour for each')


def _meaning(label: str, colour: Colour) -> str | None:
    """The label; `_IGNORED` if its pixels are ignored, None if it stands for what is not drawn."""
    if colour == VOID and means_ignored(label):
        return _IGNORED
    return None if colour == _BLACK and is_background(label) else label


def _masks(source: Source) -> list[str]:
    is_in = source.path.name == _FOLDER
    return [name for name in source.ending('.png') if is_in or _FOLDER in name.split('/')[:-1]]


def _voc_colour(index: int) -> Colour:
    """The colour of an id in VOC's palette: its bits, spread over the channels from the top."""
    red, green, blue = (
        sum((index >> 3 * bit + channel & 1) << 7 - bit for bit in range(3)) for channel in range(3)
    )
    return red, green, blue


def _colours(text: str) -> dict[str, Colour]:
    """Reads lines of `label:r,g,b:parts:actions`."""
    colours: dict[str, Colour] = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith('#'):
            label, colour, *_ = line.split(':')
            red, green, blue = map(int, colour.split(','))
            colours[label] = (red, green, blue)
    return colours


def _image(
    source: Source, name: str, by_colour: Mapping[int, str | None], by_id: Mapping[int, str | None]
) -> AnnotatedImage:
    _, _, image = f'/{_FOLDER}/{posixpath.splitext(name)[0]}'.rpartition(f'/{_FOLDER}/')
    picture = decode(source.read(name))
    codes, meanings = pack(np.asarray(picture.convert('RGB'))), by_colour
    if picture.mode == 'P' and not meanings.keys() >= set(np.unique(codes).tolist()):
        codes, meanings = np.asarray(picture), by_id  # with another palette, so it holds ids
    shapes = []
    for code in np.unique(codes).tolist():
        if code not in meanings:
            raise UserError(f'colour {colour_of(code)}', '', f'those of {_TABLE}')
        if (label := meanings[code]) is not None:
            shapes.append(Shape(label or None, mask=codes == code))
    return AnnotatedImage(image, picture.size, shapes)
