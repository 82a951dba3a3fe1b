"""CVAT's "Segmentation mask 1.1": coloured PNGs and `labelmap.txt`, laid out as in VOC."""

import posixpath
from collections.abc import Iterator, Mapping

import numpy as np

from mmseg_cct.errors import UserError
from mmseg_cct.utils.labels import is_background

from ..pictures import decode
from ..shapes import AnnotatedImage, Annotations, Colour, Shape
from ..source import Source, attempt, reading

TITLE = 'Segmentation mask 1.1'
_TABLE = 'labelmap.txt'
_FOLDER = 'SegmentationClass'
_VOID = (224, 224, 192)  # the colour of VOC's ignored pixels


def is_mine(source: Source) -> bool:
    """Whether there are class masks and a table of their colours."""
    return bool(source.named(_TABLE) and _masks(source))


def read(source: Source) -> Annotations:
    """Reads the masks; background counts as not drawn, because the tool writes both the same."""
    name = source.named(_TABLE)
    with reading(source.place(name), TITLE):
        colours = _colours(source.text(name))
    classes = {label: colour for label, colour in colours.items() if not is_background(label)}
    return Annotations(classes, _images(source, colours))


def _masks(source: Source) -> list[str]:
    return [name for name in source.ending('.png') if _FOLDER in name.split('/')[:-1]]


def _colours(text: str) -> dict[str, Colour]:
    """Reads lines of `label:r,g,b:parts:actions`."""
    colours: dict[str, Colour] = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith('#'):
            label, colour, *_ = line.split(':')
            red, green, blue = map(int, colour.split(','))
            colours[label] = (red, green, blue)
    return colours


def _images(source: Source, colours: Mapping[str, Colour]) -> Iterator[AnnotatedImage | UserError]:
    for name in _masks(source):
        _, _, image = f'/{posixpath.splitext(name)[0]}'.rpartition(f'/{_FOLDER}/')
        yield attempt(source.place(name), TITLE, _image, source, name, image, colours)


def _image(source: Source, name: str, image: str, colours: Mapping[str, Colour]) -> AnnotatedImage:
    picture = decode(source.read(name))
    codes = pack(np.asarray(picture.convert('RGB')))
    table = {code_of(colour): label for label, colour in colours.items()}
    present = set(np.unique(codes).tolist())
    if picture.mode == 'P' and present - table.keys() - {code_of(_VOID)}:
        codes = np.asarray(picture)  # with another palette, so it holds ids
        table = dict(enumerate(colours)) | {255: ''}
        present = set(np.unique(codes).tolist())
    shapes = []
    for code in sorted(present):
        label = table.get(code, '' if code == code_of(_VOID) else None)
        if label is None:
            raise UserError(f'colour {colour_of(code)}', '', f'those of {_TABLE}')
        if not is_background(label):
            shapes.append(Shape(label or None, mask=codes == code))
    return AnnotatedImage(image, picture.size, shapes)


def pack(pixels: np.ndarray) -> np.ndarray:
    """Packs uint8 RGB `(H, W, 3)` into one number per pixel."""
    wide = pixels.astype(np.uint32)
    return wide[..., 0] << 16 | wide[..., 1] << 8 | wide[..., 2]


def code_of(colour: Colour) -> int:
    """Returns the number that `pack` gives a colour."""
    return colour[0] << 16 | colour[1] << 8 | colour[2]


def colour_of(code: int) -> str:
    """Writes a packed colour as `r,g,b`."""
    return f'{code >> 16},{code >> 8 & 255},{code & 255}'
