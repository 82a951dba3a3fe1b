"""Folders of masks: pictures of colours, of grey values, or of one class on the rest."""

import posixpath
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NoReturn

import numpy as np
from PIL import Image

from mmseg_cct.datasets.files.image_files import IMAGE_SUFFIXES
from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.errors import UserError

from ..pictures import TRANSPARENT, code_of, colour_of, load, opacity, open_picture, packed_colours
from ..shapes import AnnotatedImage, Annotations, Colour, Note, Part, Shape
from ..source import Source, attempt, reading
from .segmentation_mask import VOID, require_distinct

TITLE = 'masks of colours'
_LOOKED_AT = 50  # masks whose colours are shown
_SHOWN = 12  # colours
_MOST = 256  # colours of a mask
_OPAQUE = 128  # from this opacity on, for masks with soft edges

_Read = Callable[[Image.Image], Iterator[Part]]


def is_mine(source: Source) -> str:
    """Finds a mask, if there are only pictures, with few colours."""
    names = source.ending(*IMAGE_SUFFIXES)
    is_all = names and len(names) == len(source.names)
    return names[0] if is_all and len(_count(source, names[:1])[0]) <= _MOST else ''


def ask_for_names(source: Source) -> NoReturn:
    """Raises an error that lists the colours found and shows how to name them."""
    found, ids = _count(source, source.ending(*IMAGE_SUFFIXES)[:_LOOKED_AT])
    shares = {colour_of(code): n / found.total() for code, n in found.most_common(_SHOWN)}
    listed = ', '.join(f'{colour} ({share:.1%})' for colour, share in shares.items())
    options = ' '.join(f'NAME={colour}' for colour in shares)
    expected = f'their names, --colors {options}, or --binary NAME for all but 0'
    if len(ids) > 1 and ids == set(range(len(ids))):
        command = f'mmseg-cct new-config DATA --classes {" ".join(["NAME"] * len(ids))}'
        put = f'these are ids already: put them into DATA/masks beside DATA/images, then {command}'
        expected = f'no import, {put}. Else {expected}'
    more = ', ...' if len(found) > _SHOWN else ''
    raise UserError(str(source.path), f'masks of the colours {listed}{more}', expected)


def _count(source: Source, names: list[str]) -> tuple[Counter[int], set[int]]:
    """Counts the pixels of each colour, and collects the ids that they may be, without 255."""
    counts, ids = Counter[int](), set[int]()
    for name in names:
        with reading(source.place(name)):
            picture = open_picture(source.read(name))
            codes = packed_colours(picture)
            pixels = np.asarray(picture)  # those of a palette are ids, too
            ids |= set(np.unique(pixels).tolist()) - {IGNORE_INDEX} if pixels.ndim == 2 else {-1}
        values, numbers = np.unique(codes[codes != TRANSPARENT], return_counts=True)
        counts.update(dict(zip(values.tolist(), numbers.tolist())))
    return counts, ids


def masks_of(source: Source, suffix: str) -> dict[str, str]:
    """Finds the pictures whose names end in a suffix: images' names by masks'."""
    names = [
        name for name in source.ending(*IMAGE_SUFFIXES) if name.lower().endswith(suffix.lower())
    ]
    if not names:
        raise UserError(str(source.path), 'no mask of that name', f'NAME{suffix}')
    ends = {name: suffix or posixpath.splitext(name)[1] for name in names}
    return {name: name[: -len(end)] for name, end in ends.items()}


def read_colours(
    source: Source, colours: Mapping[str, Colour], masks: Mapping[str, str], is_strict: bool
) -> Annotations:
    """Reads masks by a table of colours; others are an error if `is_strict`, else not drawn."""
    require_distinct(colours)
    names = {code_of(VOID): None, **{code_of(colour): name for name, colour in colours.items()}}
    return _read(source, colours, masks, partial(_coloured, names=names, is_strict=is_strict))


def read_binary(source: Source, name: str, masks: Mapping[str, str]) -> Annotations:
    """Reads what is opaque, or else not 0, as the class `name`."""
    return _read(source, {name: None}, masks, partial(_binary, name=name))


def _read(
    source: Source, classes: Mapping[str, Colour | None], masks: Mapping[str, str], read: _Read
) -> Annotations:
    source.masks |= masks.keys()

    def make(name: str) -> AnnotatedImage:
        picture = open_picture(source.read(name))
        if picture.format in ('JPEG', 'MPO'):  # its colours blend
            raise UserError('mask', picture.format or '', 'a format without loss, such as PNG')
        return AnnotatedImage(masks[name], picture.size, read(picture), source.place(name))

    return Annotations(classes, (attempt(source.place(name), make, name) for name in masks))


def _coloured(
    picture: Image.Image, names: Mapping[int, str | None], is_strict: bool
) -> Iterator[Part]:
    codes = packed_colours(picture)
    present = np.unique(codes).tolist()
    others = [code for code in present if code not in names]
    if others and is_strict:
        shown = ' and '.join(
            'transparent' if c == TRANSPARENT else colour_of(c) for c in others[:5]
        )
        more = f' and {len(others) - 5} more' if len(others) > 5 else ''
        raise UserError(f'colours {shown}{more}', 'without a name', '--colors with each, or --rest')
    yield Shape(None, mask=np.zeros((1, 1), bool))  # without a colour it is a mask all the same
    for code in present:
        if code in names:
            yield Shape.of_mask(names[code], codes == code)
    number = int(np.isin(codes, others).sum())
    yield Note('pixels of colours without a name, as undrawn', number)


def _binary(picture: Image.Image, name: str) -> Iterator[Part]:
    alpha = opacity(load(picture))
    if alpha is not None and (alpha != alpha.flat[0]).any():
        yield Shape.of_mask(name, alpha >= _OPAQUE)
        return
    is_plain = picture.mode != 'P' and len(picture.getbands()) == 1
    values = np.asarray(picture) if is_plain else packed_colours(picture)
    levels = np.unique(values)
    if len(levels) > 2 or (len(levels) == 2 and levels[0]) or not levels[-1] >= 0:
        shown = (
            f'{", ".join(f"{level:g}" for level in levels[:5])}{", ..." if levels[5:].size else ""}'
        )
        raise UserError(
            'mask', f'values {shown}', '0 and another value, or --colors NAME=VALUE ...'
        )
    yield Shape.of_mask(name, values != 0)
