"""Folders of masks: pictures of colours or of grey values."""

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NoReturn

import numpy as np
from PIL import Image

from mmseg_cct.datasets.files.image_files import IMAGE_SUFFIXES
from mmseg_cct.errors import UserError

from ..pictures import TRANSPARENT, color_code, color_text, open_picture, packed_colors
from ..shapes import AnnotatedImage, Annotations, Color, Note, Shape
from ..source import Source, attempt, reading
from .segmentation_mask import VOID, require_distinct

TITLE = 'masks of colours'
_LOOKED_AT = 50  # masks whose colours are shown
_SHOWN = 12  # colours
_MOST = 256  # colours of a mask; a photo has more


def files(source: Source) -> list[str]:
    """Finds the masks, if there are only pictures, the first of them with few colours."""
    names = source.ending(*IMAGE_SUFFIXES)
    is_all = names and len(names) == len(source.names)
    return names if is_all and len(_count(source, names[:1])) <= _MOST else []


def ask_for_names(source: Source) -> NoReturn:
    """Raises an error that lists the colours found and shows how to name them."""
    counts = _count(source, source.ending(*IMAGE_SUFFIXES)[:_LOOKED_AT])
    shares = {color_text(code): n / counts.total() for code, n in counts.most_common(_SHOWN)}
    listed = ', '.join(f'{color} ({share:.1%})' for color, share in shares.items())
    more = ', ...' if len(counts) > _SHOWN else ''
    names = ' '.join(f'NAME={color}' for color in shares)
    problem = f'masks of the colours {listed}{more}'
    raise UserError(str(source.path), f'{problem}; name them: --colors {names}')


def _count(source: Source, names: list[str]) -> Counter[int]:
    """Counts the pixels of each colour."""
    counts = Counter[int]()
    for name in names:
        with reading(source.location(name)):
            codes = packed_colors(open_picture(source.read(name)))
        values, numbers = np.unique(codes[codes != TRANSPARENT], return_counts=True)
        counts.update(dict(zip(values.tolist(), numbers.tolist())))
    return counts


def read_colors(
    source: Source, colors: Mapping[str, Color], suffix: str, is_strict: bool
) -> Annotations:
    """Reads the pictures whose names end in `suffix`, by a table of colours.

    Other colours are an error if `is_strict`, else not drawn.
    """
    require_distinct(colors)
    names = [n for n in source.ending(*IMAGE_SUFFIXES) if n.lower().endswith(suffix.lower())]
    if not names:
        raise UserError(str(source.path), 'no mask of that name', f'NAME{suffix}')
    source.masks |= set(names)
    # VOC's border between objects, unless it is named
    labels = {color_code(VOID): None, **{color_code(color): name for name, color in colors.items()}}

    def make(name: str) -> AnnotatedImage:
        picture = open_picture(source.read(name))
        if picture.format in ('JPEG', 'MPO'):  # its colours blend
            raise UserError('mask', picture.format or '', 'a format without loss, such as PNG')
        image = name[: -len(suffix or posixpath.splitext(name)[1])]
        parts = _parts(picture, labels, is_strict)
        return AnnotatedImage(image, picture.size, parts, source.location(name))

    return Annotations(colors, (attempt(source.location(name), make, name) for name in names))


def _parts(
    picture: Image.Image, labels: Mapping[int, str | None], is_strict: bool
) -> Iterator[Shape | Note]:
    codes = packed_colors(picture)
    present = np.unique(codes).tolist()
    unnamed = [code for code in present if code not in labels]
    if unnamed and is_strict:
        shown = ['transparent' if c == TRANSPARENT else color_text(c) for c in unnamed[:5]]
        more = f' and {len(unnamed) - 5} more' if len(unnamed) > 5 else ''
        problem = f'colours {" and ".join(shown)}{more} have no name'
        raise UserError(f'{problem}; name each in --colors, or pass --rest')
    yield Shape(None, mask=np.zeros((1, 1), bool))  # without a colour it is a mask all the same
    for code in present:
        if code in labels:
            yield Shape.of_mask(labels[code], codes == code)
    num_pixels = int(np.isin(codes, unnamed).sum())
    yield Note('pixels of colours without a name, as undrawn', num_pixels)
