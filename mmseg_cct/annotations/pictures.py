"""Pictures in exports: embedded bitmaps and masks, and the size that an annotator saw."""

import io
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError
from PIL.TiffImagePlugin import IMAGELENGTH, IMAGEWIDTH, TiffImageFile

from mmseg_cct.datasets.files.image_files import require_file
from mmseg_cct.datasets.files.images import ORIENTATION, decode_channels
from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import one_line

from .shapes import MAX_PIXELS, Colour

_FORMATS = ('BMP', 'GIF', 'JPEG', 'PNG', 'TIFF', 'WEBP')


def decode(data: bytes) -> Image.Image:
    """Decodes a picture, unless it is too large."""
    try:
        image = Image.open(io.BytesIO(data), formats=_FORMATS)
        if image.width * image.height > MAX_PIXELS:
            raise ValueError(f'{image.width}×{image.height} pixels')
        image.load()
    except UnidentifiedImageError:
        raise UserError('picture', 'no image', f'one of {", ".join(_FORMATS)}') from None
    except Exception as error:  # Pillow raises nearly anything on a corrupt file
        found = f'cannot be read ({one_line(error, 100)})'
        raise UserError('picture', found, 'a readable picture') from None
    return image


def bitmap(data: bytes) -> np.ndarray:
    """Decodes a bool mask `(h, w)`: True where opaque or, without transparency, not black."""
    image = decode(data)
    if image.mode == 'P' and 'transparency' in image.info:
        image = image.convert('RGBA')
    if image.mode in ('LA', 'RGBA', 'PA'):
        return np.asarray(image.getchannel('A')) > 0
    pixels = np.asarray(image)
    return (pixels if pixels.ndim == 2 else pixels.max(-1)) > 0


def rgb(image: Image.Image) -> np.ndarray:
    """Returns the colours of a mask, `(H, W, 3)` uint8; values of more bits must fit in 8."""
    if image.mode[0] in 'IF':
        values = whole_numbers(image)
        if values.max() > 255:
            raise UserError(f'values up to {values.max()}', '', 'a mask of 8 bits')
        image = Image.fromarray(values.astype(np.uint8))
    return np.asarray(image.convert('RGB'))


def whole_numbers(image: Image.Image, ignored: Collection[int] = ()) -> np.ndarray:
    """Returns the values of a mask, 0 where they are `ignored`; others must be whole, 0 or more."""
    values = np.asarray(image)
    values = np.where(np.isin(values, list(ignored)), 0, values) if ignored else values
    wrong = values[~(np.isfinite(values) & (values >= 0) & (values % 1 == 0))]
    if wrong.size:
        shown = ', '.join(f'{value:g}' for value in np.unique(wrong)[:5])
        ids = [f'{value:.0f}=' for value in np.unique(wrong) if value % 1 == 0]
        expected = 'whole numbers from 0' + ((ids and f', or --rename {ids[0]} to ignore it') or '')
        raise UserError('values', f'{shown} ({wrong.size} pixels)', expected)
    return values


def flat_values(values: np.ndarray) -> dict[int, int]:
    """Counts pixels `(H, W)` like their four neighbours, by value; those of edges are none."""
    inner = values[1:-1, 1:-1]
    around = values[:-2, 1:-1], values[2:, 1:-1], values[1:-1, :-2], values[1:-1, 2:]
    flat = np.logical_and.reduce([inner == other for other in around])
    return dict(zip(*(each.tolist() for each in np.unique(inner[flat], return_counts=True))))


def pack(pixels: np.ndarray) -> np.ndarray:
    """Packs uint8 RGB `(H, W, 3)` into one number per pixel."""
    return pixels @ np.array([1 << 16, 1 << 8, 1], np.uint32)


def code_of(colour: Colour) -> int:
    """Returns the number that `pack` gives a colour."""
    return colour[0] << 16 | colour[1] << 8 | colour[2]


def colour_of(code: int) -> str:
    """Writes a packed colour as `r,g,b`."""
    return f'{code >> 16},{code >> 8 & 255},{code & 255}'


def size_of(image: Path | bytes) -> tuple[tuple[int, int], int]:
    """Reads width and height as they are stored, and the EXIF orientation."""
    try:
        if isinstance(image, Path):
            require_file(image)
        file = io.BytesIO(image) if isinstance(image, bytes) else image
        with suppress(UnidentifiedImageError), Image.open(file, formats=_FORMATS) as opened:
            size = opened.size
            if isinstance(opened, TiffImageFile):  # its `size` is turned already
                size = opened.tag_v2[IMAGEWIDTH], opened.tag_v2[IMAGELENGTH]
            return size, opened.getexif().get(ORIENTATION, 1)
        # other decoders may know it
        data = image if isinstance(image, bytes) else image.read_bytes()
        height, width = decode_channels(data).shape[:2]
        return (width, height), 1
    except Exception as error:
        place = 'the image in the annotation' if isinstance(image, bytes) else str(image)
        found = f'cannot be read ({one_line(error, 100)})'
        raise UserError(place, found, 'a readable image') from None


def turned(mask: np.ndarray, orientation: int) -> np.ndarray:
    """Turns a mask as an EXIF orientation turns its image."""
    image = Image.fromarray(mask)
    image.getexif()[ORIENTATION] = orientation
    return np.asarray(ImageOps.exif_transpose(image))
