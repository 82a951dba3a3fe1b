"""Reads size, channels, bits and opacity of an image from its header."""

import io
import os
from typing import BinaryIO, NamedTuple

from PIL import Image
from PIL.ExifTags import Base
from PIL.TiffImagePlugin import ImageFileDirectory_v2

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
# TIFF's photometric interpretations
_GREY, _PALETTE, _CMYK = (0, 1), 3, 5
_THREE_COLOURS = (2, 6, 8)  # RGB, YCbCr, L*a*b*
# Bits of TIFF's NewSubfileType: a smaller copy, as in a Cloud Optimized GeoTIFF, and its mask.
_NO_PAGE = 1 | 4
_NO_DATA = 42113  # GDAL's tag


class Header(NamedTuple):
    """What a file says of its image before a pixel is decoded."""

    size: tuple[int, int]  # width and height in the file
    orientation: int  # of EXIF, 1 to 8; 1 without one
    is_whole: bool  # whether it is a PNG or JPEG that is not cut off


class ImageFormat(NamedTuple):
    """Format of an image.

    It `is_plain` if MMSegmentation's `LoadImageFromFile` reads it unchanged, which converts
    anything to three channels of 8 bits: 12 bits stored in 16 become 4, and a fourth channel is
    taken for opacity, by which the others are multiplied.
    """

    channels: int
    bits: int  # per channel in the file
    kind: str = 'integers'  # or 'floats', or 'signed integers'
    has_opacity: bool = False  # whether the last channel is the opacity of the others
    is_plain: bool = True
    opencv_reads: bool = True  # whether OpenCV can return all channels unchanged
    no_data: float | None = None  # the value of pixels without one, by GDAL's tag

    def describe(self) -> str:
        """Describes it, such as '4 channels of 16 bits'."""
        kind = '' if self.kind == 'integers' else f', {self.kind}'
        return f'{counted(self.channels, "channel")} of {self.bits} bits{kind}'


class UnsuitableImage(ValueError):
    """An image that the pipeline's loader would change."""


def open_image(data: bytes | BinaryIO) -> Image.Image:
    """Opens an image with Pillow, which reads only the header."""
    return Image.open(io.BytesIO(data) if isinstance(data, bytes) else data, formats=_FORMATS)


def read_header(file: BinaryIO) -> Header | None:
    """Reads the header and the end of an image; None where a decoder has to say more."""
    try:
        image = open_image(file)
        # Pillow would decode a PNG to look for EXIF behind the pixels.
        has_exif = image.format != 'PNG' or 'exif' in image.info
        orientation = image.getexif().get(ORIENTATION, 1) if has_exif else 1
    except Exception:  # Pillow raises nearly anything on a corrupt file
        return None
    file.seek(max(file.seek(0, os.SEEK_END) - _TAIL, 0))
    is_whole = image.format in _ENDS and _ENDS[image.format] in file.read()
    return Header(image.size, orientation, is_whole)


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
        bits, colour = start[24], start[25]
        return ImageFormat(
            _PNG_CHANNELS.get(colour, 3),
            bits,
            has_opacity=colour in (4, 6),
            is_plain=bits <= 8,  # OpenCV keeps the colours of opacity
        )
    return ImageFormat(3, 8)


def require_plain(found: ImageFormat) -> None:
    """Raises `UnsuitableImage` if `LoadImageFromFile` would change the content of an image."""
    if not found.is_plain:
        raise UnsuitableImage(
            f'{found.describe()}, which LoadImageFromFile would change; expected 8-bit RGB or grey,'
            ' or LoadChannels in its place, as tools/new_config.py writes it for such images'
        )


def _tiff_format(file: BinaryIO) -> ImageFormat:
    """Reads the tags of a TIFF's first page, and counts the pages."""
    file.seek(0)
    header = file.read(8)
    if b'+' in header[2:4]:  # BigTIFF, whose offsets have 8 bytes
        header += file.read(8)
    first = tags = ImageFileDirectory_v2(header)
    places, pages = [tags.next], 0
    while places[-1] and places[-1] not in places[:-1]:  # else a damaged file leads in a circle
        file.seek(places[-1])
        tags.load(file)
        pages += not tags.get(254, 0) & _NO_PAGE
        places.append(tags.next)
        tags = ImageFileDirectory_v2(header)
    if pages > 1:
        raise UnsuitableImage(f'{pages} pages; expected one page that has all channels')

    # by TIFF 6.0: bits, sample format and kinds of extra channels may have a value per channel
    bits, kinds, extra = (
        value if isinstance(value, tuple) else (value,)
        for value in (first.get(258, 1), first.get(339, 1), first.get(338, ()))
    )
    channels, colours, separate = first.get(277, 1), first.get(262, 1), first.get(284, 1) == 2
    as_colours = (
        (channels == 1 and colours in (*_GREY, _PALETTE))
        or (channels == 3 and colours in _THREE_COLOURS)
        or (channels == 4 and colours == _CMYK)
    )
    # OpenCV multiplies by opacity, and mixes up separate planes and channels that are not colours
    in_order = (channels == 1 or colours == 2) and channels in (1, 3, 4) and 2 not in extra
    in_order &= not (separate and channels > 1) and max(bits) in (8, 16, 32)
    return ImageFormat(
        channels,
        max(bits),
        'integers' if set(kinds) == {1} else 'floats' if set(kinds) == {3} else 'signed integers',
        has_opacity=bool(extra) and extra[-1] in (1, 2),
        is_plain=as_colours and max(bits) <= 8 and set(kinds) == {1},
        opencv_reads=in_order,
        no_data=_number(first.get(_NO_DATA)),
    )


def _number(text: object) -> float | None:
    try:
        return float(str(text).strip('\0 '))
    except ValueError:
        return None
