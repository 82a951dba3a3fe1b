"""Pictures in exports: embedded bitmaps and masks, and the size that an annotator saw."""

import io
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError
from PIL.TiffImagePlugin import IMAGELENGTH, IMAGEWIDTH, TiffImageFile

from mmseg_cct.errors import Problem, UserError
from mmseg_cct.utils.image_files import ORIENTATION, decode_channels, require_file
from mmseg_cct.utils.text import one_line

from .shapes import MAX_PIXELS

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
    if image.mode == 'P' and 'transparency' in image.info:  # as Supervisely's SDK writes it
        image = image.convert('RGBA')
    if image.mode in ('LA', 'RGBA', 'PA'):
        return np.asarray(image.getchannel('A')) > 0
    pixels = np.asarray(image)
    return (pixels if pixels.ndim == 2 else pixels.max(-1)) > 0


def rgb(image: Image.Image) -> np.ndarray:
    """Returns the colours of a mask, `(H, W, 3)` uint8; values of more bits must fit in 8."""
    if image.mode[0] in 'IF':
        values = np.asarray(image)
        if values.min() < 0 or values.max() > 255:
            raise UserError(f'values up to {values.max()}', '', 'a mask of 8 bits')
        image = Image.fromarray(values.astype(np.uint8))
    return np.asarray(image.convert('RGB'))


def size_of(image: Path | bytes) -> tuple[tuple[int, int], int]:
    """Reads width and height as they are stored, and the EXIF orientation."""
    try:
        if isinstance(image, Path):
            require_file(image)
        file = io.BytesIO(image) if isinstance(image, bytes) else image
        with Image.open(file, formats=_FORMATS) as opened:
            size = opened.size
            if isinstance(opened, TiffImageFile):  # its `size` is turned already
                size = opened.tag_v2[IMAGEWIDTH], opened.tag_v2[IMAGELENGTH]
            return size, opened.getexif().get(ORIENTATION, 1)
    except UnidentifiedImageError:
        pass  # other decoders may know it
    except Exception as error:
        raise UserError(_unreadable(image, error)) from None
    try:
        data = image if isinstance(image, bytes) else image.read_bytes()
        height, width = decode_channels(data).shape[:2]
    except Exception as error:
        raise UserError(_unreadable(image, error)) from None
    return (width, height), 1


def _unreadable(image: Path | bytes, error: Exception) -> Problem:
    place = 'the image in the annotation' if isinstance(image, bytes) else str(image)
    return Problem(place, f'cannot be read ({one_line(error, 100)})', 'a readable image')


def turned(mask: np.ndarray, orientation: int) -> np.ndarray:
    """Turns a mask as an EXIF orientation turns its image."""
    image = Image.fromarray(mask)
    image.getexif()[ORIENTATION] = orientation
    return np.asarray(ImageOps.exif_transpose(image))
