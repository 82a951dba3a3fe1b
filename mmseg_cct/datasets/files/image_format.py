"""Reads size, channels, bits and opacity of an image from its header."""

import io
import os
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from PIL import Image
from PIL.ExifTags import Base
from tifffile import EXTRASAMPLE, FILETYPE, PHOTOMETRIC, PLANARCONFIG, TiffFile

from mmseg_cct.utils.text import counted

ORIENTATION = int(Base.Orientation)  # the EXIF tag
# What Pillow may open, whatever a file is named: by default it runs Ghostscript on PostScript.
_FORMATS = ('BMP', 'DIB', 'GIF', 'JPEG', 'PNG', 'PPM', 'TIFF', 'WEBP')
# The mark of the last bytes, after which some programs append a little.
# MPO is a JPEG with a second one behind it, as phones write it.
_ENDS = {'JPEG': b'\xff\xd9', 'MPO': b'\xff\xd9', 'PNG': b'IEND'}
_TAIL = 64  # bytes

_TIFF = (b'II*\0', b'MM\0*', b'II+\0', b'MM\0+')  # the last two are BigTIFF
_PNG = b'\x89PNG\r\n\x1a\n'
_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}  # by colour type; a palette gives three
# Channels of a TIFF whose channels are colors.
_COLORS = dict.fromkeys((PHOTOMETRIC.MINISBLACK, PHOTOMETRIC.PALETTE), 1)
_COLORS |= dict.fromkeys((PHOTOMETRIC.RGB, PHOTOMETRIC.YCBCR, PHOTOMETRIC.CIELAB), 3)
_COLORS[PHOTOMETRIC.SEPARATED] = 4  # CMYK
# A smaller copy, as in a Cloud Optimized GeoTIFF, and its mask.
_NO_PAGE = FILETYPE.REDUCEDIMAGE | FILETYPE.MASK
_NO_DATA = 42113  # GDAL's tag


class ImageFormat(NamedTuple):
    """Format of an image.

    It `is_plain` if MMSegmentation's `LoadImageFromFile` reads it unchanged, which converts
    anything to three channels of 8 bits: 12 bits stored in 16 become 4, and a fourth channel is
    taken for opacity, by which the others are multiplied.
    """

    channels: int
    bits: int  # per channel in the file
    values: str = 'integers'  # or 'floats', or 'signed integers'
    has_opacity: bool = False  # whether the last channel is the opacity of the others
    is_plain: bool = True
    opencv_reads: bool = True  # whether OpenCV can return all channels unchanged
    no_data: float | None = None  # the value of pixels without one, by GDAL's tag

    def describe(self) -> str:
        """Describes it, such as '4 channels of 16 bits'."""
        values = '' if self.values == 'integers' else f', {self.values}'
        return f'{counted(self.channels, "channel")} of {self.bits} bits{values}'


class UnsuitableImage(ValueError):
    """An image that the pipeline's loader would change."""


def open_image(data: bytes | BinaryIO) -> Image.Image:
    """Opens an image with Pillow, which reads only the header."""
    return Image.open(io.BytesIO(data) if isinstance(data, bytes) else data, formats=_FORMATS)


def size_of_whole(file: BinaryIO) -> tuple[int, int] | None:
    """Reads the size of a PNG or JPEG that is not cut off from its header.

    None where a decoder has to say more, such as how it turns an image by its EXIF tag.
    """
    try:
        image = open_image(file)
        # Pillow would decode a PNG to look for EXIF behind the pixels.
        has_exif = image.format != 'PNG' or 'exif' in image.info
        orientation = image.getexif().get(ORIENTATION, 1) if has_exif else 1
    except Exception:  # Pillow raises nearly anything on a corrupt file
        return None
    file.seek(max(file.seek(0, os.SEEK_END) - _TAIL, 0))
    is_whole = image.format in _ENDS and _ENDS[image.format] in file.read()
    return image.size if is_whole and orientation == 1 else None


def image_format(file: BinaryIO | bytes) -> ImageFormat:
    """Reads the format of a PNG or TIFF; others pass as three channels of 8 bits.

    Pillow has no mode for many of them, and may raise nearly any exception on a corrupt TIFF.

    Raises:
        UnsuitableImage: If it is a TIFF of several pages, of which loaders read the first.
    """
    if isinstance(file, bytes):
        file = io.BytesIO(file)
    file.seek(0)
    start = file.read(26)
    if start[:4] in _TIFF:
        return _tiff_format(file)
    if start.startswith(_PNG) and len(start) == 26:
        bits, color_type = start[24], start[25]
        channels = _PNG_CHANNELS.get(color_type, 3)
        # OpenCV keeps the colours of opacity
        return ImageFormat(channels, bits, has_opacity=color_type in (4, 6), is_plain=bits <= 8)
    return ImageFormat(3, 8)


def require_plain(image: ImageFormat) -> None:
    """Raises `UnsuitableImage` if `LoadImageFromFile` would change the content of an image."""
    if not image.is_plain:
        raise UnsuitableImage(
            f'{image.describe()}, which LoadImageFromFile would change; expected 8-bit RGB or grey,'
            ' or LoadChannels in its place, as mmseg-cct new-config writes it for such images'
        )


def _tiff_format(file: BinaryIO) -> ImageFormat:
    """Reads the tags of a TIFF's first page, and counts the pages."""
    file.seek(0)
    with TiffFile(file) as tiff:
        pages: list[Any] = list(tiff.pages)
    num_pages, page = sum(not page.subfiletype & _NO_PAGE for page in pages), pages[0]
    if num_pages > 1:
        raise UnsuitableImage(f'{num_pages} pages; expected one page that has all channels')

    channels, extra = page.samplesperpixel, page.extrasamples
    bits = int(np.max(page.bitspersample))  # by TIFF 6.0 they may differ by channel
    values = {1: 'integers', 3: 'floats'}.get(page.sampleformat, 'signed integers')
    # OpenCV multiplies by opacity, and mixes up separate planes and channels that are not colors
    in_order = (channels == 1 or page.photometric == PHOTOMETRIC.RGB) and channels in (1, 3, 4)
    in_order &= EXTRASAMPLE.UNASSALPHA not in extra and bits in (8, 16, 32)
    in_order &= page.photometric != PHOTOMETRIC.MINISWHITE  # OpenCV inverts these
    in_order &= not (page.planarconfig == PLANARCONFIG.SEPARATE and channels > 1)
    return ImageFormat(
        channels,
        bits,
        values,
        has_opacity=bool(extra) and extra[-1] in (EXTRASAMPLE.ASSOCALPHA, EXTRASAMPLE.UNASSALPHA),
        is_plain=_COLORS.get(page.photometric) == channels and bits <= 8 and values == 'integers',
        opencv_reads=in_order,
        no_data=_number(page.tags.valueof(_NO_DATA)),
    )


def _number(text: object) -> float | None:
    try:
        return float(str(text).strip('\0 '))
    except ValueError:
        return None
