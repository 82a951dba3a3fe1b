"""Pictures in exports: embedded bitmaps and masks, and the size that an annotator saw."""

import io
from contextlib import suppress
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError
from PIL.TiffImagePlugin import IMAGELENGTH, IMAGEWIDTH, TiffImageFile

from mmseg_cct.datasets.files.image_format import ORIENTATION, open_image
from mmseg_cct.datasets.files.images import decode_channels, named_if_unreadable
from mmseg_cct.errors import UserError

from .shapes import Color

TRANSPARENT = -1  # among packed colours: a pixel that is not shown


def open_picture(data: bytes) -> Image.Image:
    """Reads a picture."""
    with named_if_unreadable('picture', 'picture'):
        image = open_image(data)
        image.load()
    return image


def opacity(image: Image.Image) -> np.ndarray | None:
    """Returns the opacity of a picture `(H, W)` uint8, or None if it has none."""
    if image.mode in ('LA', 'RGBA', 'PA') or 'transparency' in image.info:
        return np.asarray(image.convert('RGBA').getchannel('A'))
    return None


def bitmap(image: Image.Image) -> np.ndarray:
    """Returns a bool mask `(h, w)`: True where opaque or, without transparency, not black."""
    alpha = opacity(image)
    pixels = np.asarray(image) if alpha is None else alpha
    return (pixels if pixels.ndim == 2 else pixels.max(-1)) > 0


def packed_colors(image: Image.Image) -> np.ndarray:
    """Packs the colours of a mask into one number per pixel `(H, W)`.

    Values of more bits must fit in 8.
    """
    alpha = opacity(image)
    if image.mode[0] in 'IF':
        values = np.asarray(image)
        wrong = values[~((values >= 0) & (values < 256) & (values % 1 == 0))]
        if wrong.size:
            raise UserError(f'value {wrong.flat[0]:g}', '', 'whole numbers from 0 to 255')
        image = Image.fromarray(values.astype(np.uint8))
    codes = np.asarray(image.convert('RGB')) @ np.array([1 << 16, 1 << 8, 1], np.int32)
    if alpha is not None:  # editors keep the colour of what was erased
        codes[alpha == 0] = TRANSPARENT
    return codes


def color_code(color: Color) -> int:
    """Returns the number that `packed_colors` gives a colour."""
    return color[0] << 16 | color[1] << 8 | color[2]


def color_text(code: int) -> str:
    """Writes a packed colour as `--colors` takes it: `r,g,b`, or one number for a grey."""
    parts = [str(code >> shift & 255) for shift in (16, 8, 0)]
    return parts[0] if len(set(parts)) == 1 else ','.join(parts)


def size_of(image: Path | bytes) -> tuple[tuple[int, int], int]:
    """Reads width and height as they are stored, and the EXIF orientation."""
    with (
        named_if_unreadable(image if isinstance(image, Path) else 'image', 'image'),
        io.BytesIO(image) if isinstance(image, bytes) else image.open('rb') as file,
    ):
        with suppress(UnidentifiedImageError):
            opened = open_image(file)
            size = opened.size
            if isinstance(opened, TiffImageFile):  # its `size` is turned already
                size = opened.tag_v2[IMAGEWIDTH], opened.tag_v2[IMAGELENGTH]
            return size, opened.getexif().get(ORIENTATION, 1)
        file.seek(0)  # other decoders may know it
        height, width = decode_channels(file.read()).shape[:2]
        return (width, height), 1
