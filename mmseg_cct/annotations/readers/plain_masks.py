"""Folders of masks: pictures of colours or of grey values."""

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NoReturn

import numpy as np
from PIL import Image

from mmseg_cct.datasets.files.image_files import IMAGE_SUFFIXES
from mmseg_cct.errors import UserError

from ..pictures import TRANSPARENT, code_of, colour_of, open_picture, packed_colours
from ..shapes import AnnotatedImage, Annotations, Colour, Note, Shape
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
    found = _count(source, source.ending(*IMAGE_SUFFIXES)[:_LOOKED_AT])
    shares = {colour_of(code): n / found.total() for code, n in found.most_common(_SHOWN)}
    listed = ', '.join(f'{colour} ({share:.1%})' for colour, share in shares.items())
    more = ', ...' if len(found) > _SHOWN else ''
    names = ' '.join(f'NAME={colour}' for colour in shares)
    raise UserError(
        str(source.path), f'masks of the colours {listed}{more}; name them: --colors {names}'
    )


def _count(source: Source, names: list[str]) -> Counter[int]:
    """Counts the pixels of each colour."""
    counts = Counter[int]()
    for name in names:
        with reading(source.place(name)):
            codes = packed_colours(open_picture(source.read(name)))
        values, numbers = np.unique(codes[codes != TRANSPARENT], return_counts=True)
        counts.update(dict(zip(values.tolist(), numbers.tolist())))
    return counts


def read_colours(
    source: Source, colours: Mapping[str, Colour], suffix: str, is_strict: bool
) -> Annotations:
    """Reads the pictures whose names end in `suffix`, by a table of colours.

    Other colours are an error if `is_strict`, else not drawn.
    """
    require_distinct(colours)
    names = [
        name for name in source.ending(*IMAGE_SUFFIXES) if name.lower().endswith(suffix.lower())
    ]
    if not names:
        raise UserError(str(source.path), 'no mask of that name', f'NAME{suffix}')
    source.masks |= set(names)
    # VOC's border between objects, unless it is named
    labels = {code_of(VOID): None, **{code_of(colour): name for name, colour in colours.items()}}

    def make(name: str) -> AnnotatedImage:
        picture = open_picture(source.read(name))
        if picture.format in ('JPEG', 'MPO'):  # its colours blend
            raise UserError('mask', picture.format or '', 'a format without loss, such as PNG')
        image = name[: -len(suffix or posixpath.splitext(name)[1])]
        parts = _parts(picture, labels, is_strict)
        return AnnotatedImage(image, picture.size, parts, source.place(name))

    return Annotations(colours, (attempt(source.place(name), make, name) for name in names))


def _parts(
    picture: Image.Image, labels: Mapping[int, str | None], is_strict: bool
) -> Iterator[Shape | Note]:
    codes = packed_colours(picture)
    present = np.unique(codes).tolist()
    others = [code for code in present if code not in labels]
    if others and is_strict:
        shown = ['transparent' if c == TRANSPARENT else colour_of(c) for c in others[:5]]
        more = f' and {len(others) - 5} more' if len(others) > 5 else ''
        found = f'colours {" and ".join(shown)}{more} have no name'
        raise UserError(f'{found}; name each in --colors, or pass --rest')
    yield Shape(None, mask=np.zeros((1, 1), bool))  # without a colour it is a mask all the same
    for code in present:
        if code in labels:
            yield Shape.of_mask(labels[code], codes == code)
    number = int(np.isin(codes, others).sum())
    yield Note('pixels of colours without a name, as undrawn', number)
