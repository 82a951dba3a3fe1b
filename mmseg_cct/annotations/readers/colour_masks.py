"""Folders of masks: pictures of colours, of grey values, or of one class against the rest."""

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NoReturn

import numpy as np
from PIL import Image

from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_files import IMAGE_SUFFIXES

from ..pictures import decode, rgb
from ..shapes import AnnotatedImage, Annotations, Colour, Shape
from ..source import Source, attempt, reading
from .segmentation_mask import code_of, colour_of, pack

TITLE = 'masks of colours'
_LOOKED_AT = 50  # masks whose colours are shown
_SHOWN = 12  # colours


def is_mine(source: Source) -> bool:
    """Whether there are only pictures, with few colours."""
    names = _masks(source)
    return bool(names) and len(names) == len(source.names) and bool(_count(source, names[:1]))


def read_colours(
    source: Source, colours: Mapping[str, Colour], suffix: str, is_strict: bool
) -> Annotations:
    """Reads masks by a table of colours; others are an error if `is_strict`, else not drawn."""
    return Annotations(colours, _images(source, suffix, colours, is_strict))


def read_binary(source: Source, name: str, suffix: str) -> Annotations:
    """Reads masks of one class: pixels that are not 0 or, with transparency, not transparent."""
    return Annotations({name: None}, _images(source, suffix, name, False))


def ask_for_names(source: Source) -> NoReturn:
    """Raises an error that lists the colours found and shows how to name them."""
    found = _count(source, _masks(source)[:_LOOKED_AT])
    shares = {_shown(code): count / found.total() for code, count in found.most_common(_SHOWN)}
    listed = ', '.join(f'{colour} ({share:.1%})' for colour, share in shares.items())
    options = ' '.join(f'NAME={colour}' for colour in shares)
    raise UserError(
        str(source.path),
        f'masks of the colours {listed}{", ..." if len(found) > _SHOWN else ""}',
        f'their names, --colors {options}, or --binary NAME for all but 0',
    )


def _shown(code: int) -> str:
    """Writes a colour as `--colors` takes it: greys as one number."""
    parts = colour_of(code).split(',')
    return parts[0] if len(set(parts)) == 1 else ','.join(parts)


def _masks(source: Source) -> list[str]:
    return source.ending(*IMAGE_SUFFIXES)


def _count(source: Source, names: list[str]) -> Counter[int]:
    """Counts the pixels of each colour; returns none if there are too many colours for masks."""
    counts: Counter[int] = Counter()
    for name in names:
        with reading(source.place(name), TITLE):
            codes, numbers = np.unique(pack(rgb(decode(source.read(name)))), return_counts=True)
        if len(codes) > 256:
            return Counter()
        counts.update(dict(zip(codes.tolist(), numbers.tolist())))
    return counts


def _images(
    source: Source, suffix: str, colours: Mapping[str, Colour] | str, is_strict: bool
) -> Iterator[AnnotatedImage | UserError]:
    names = _masks(source)
    named = [name for name in names if name.lower().endswith(suffix.lower())]
    if not named:
        raise UserError(str(source.path), 'no mask of that name', f'NAME{suffix}')
    for name in named:
        image = name[: -len(suffix)] if suffix else posixpath.splitext(name)[0]
        place = source.place(name)
        yield attempt(place, TITLE, _image, source, name, image, colours, is_strict)


def _image(
    source: Source, name: str, image: str, colours: Mapping[str, Colour] | str, is_strict: bool
) -> AnnotatedImage:
    picture = decode(source.read(name))
    if isinstance(colours, str):
        shapes = _binary(picture, colours)
    else:
        shapes = _coloured(picture, colours, is_strict)
    return AnnotatedImage(image, picture.size, shapes)


def _coloured(picture: Image.Image, colours: Mapping[str, Colour], is_strict: bool) -> list[Shape]:
    codes = pack(rgb(picture))
    table = {code_of(colour): name for name, colour in colours.items()}
    present = np.unique(codes).tolist()
    unknown = [_shown(code) for code in present if code not in table]
    if unknown and is_strict:
        more = f' and {len(unknown) - 5} more' if len(unknown) > 5 else ''
        key = f'colours {" and ".join(unknown[:5])}{more}'
        raise UserError(key, 'without a name', '--colors with each, or --rest')
    return [Shape(table[code], mask=codes == code) for code in present if code in table]


def _binary(picture: Image.Image, name: str) -> list[Shape]:
    """Returns the class where the picture is not 0 or, in a JPEG with its blurred edges, bright."""
    if picture.mode == 'P':
        picture = picture.convert('RGBA' if 'transparency' in picture.info else 'RGB')
    pixels = np.asarray(picture)
    if pixels.ndim == 3:
        has_alpha = pixels.shape[2] in (2, 4)
        values, alpha = pixels[..., : pixels.shape[2] - has_alpha], pixels[..., -1]
        pixels = alpha if has_alpha and (alpha != alpha.flat[0]).any() else values.max(-1)
    mask = pixels > (127 if picture.format == 'JPEG' else 0)
    return [Shape(name, mask=mask)]
