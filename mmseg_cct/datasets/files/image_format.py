"""Reads channels, bits and opacity of an image from its header."""

import io
from typing import BinaryIO, NamedTuple

from PIL.TiffImagePlugin import ImageFileDirectory_v2

from mmseg_cct.utils.text import counted

TIFF = (b'II*\0', b'MM\0*', b'II+\0', b'MM\0+')  # the last two are BigTIFF
_BIG = (b'+\0', b'\0+')
PNG = b'\x89PNG\r\n\x1a\n'
_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}  # by colour type; a palette gives three
# TIFF's photometric interpretations
_GREY, _PALETTE, _CMYK = (0, 1), 3, 5
_THREE_COLOURS = (2, 6, 8)  # RGB, YCbCr, L*a*b*
# Bits of TIFF's NewSubfileType: a smaller copy, as in a Cloud Optimized GeoTIFF, and its mask.
_NO_PAGE = 1 | 4


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

    def describe(self) -> str:
        """Describes it, such as '4 channels of 16 bits'."""
        kind = '' if self.kind == 'integers' else f', {self.kind}'
        return f'{counted(self.channels, "channel")} of {self.bits} bits{kind}'


class UnsuitableImage(ValueError):
    """An image that the pipeline's loader would change."""


def image_format(file: BinaryIO | bytes) -> ImageFormat:
    """Reads the format of a PNG or TIFF; others pass as three channels of 8 bits.

    The position in the file is restored. Pillow may raise nearly any exception on a corrupt TIFF.

    Raises:
        UnsuitableImage: If it is a TIFF of several pages, of which loaders read the first.
    """
    if isinstance(file, bytes):
        file = io.BytesIO(file)
    here = file.tell()
    try:
        file.seek(0)
        start = file.read(26)
        if start[:4] in TIFF:
            tags, pages = _first_page(file)
            if pages > 1:
                raise UnsuitableImage(f'{pages} pages; expected one page that has all channels')
            return _of_tiff(tags)
        if start.startswith(PNG) and len(start) == 26:
            return png_format(start[24], start[25])
        return ImageFormat(3, 8)
    finally:
        file.seek(here)


def png_format(bits: int, colour: int) -> ImageFormat:
    """The format of a PNG by two bytes of its header; OpenCV keeps the colours of opacity."""
    return ImageFormat(_PNG_CHANNELS.get(colour, 3), bits, 'integers', colour in (4, 6), bits <= 8)


def require_plain(found: ImageFormat) -> None:
    """Raises `UnsuitableImage` if `LoadImageFromFile` would change the content of an image."""
    if not found.is_plain:
        raise UnsuitableImage(
            f'{found.describe()}, which LoadImageFromFile would change; expected 8-bit RGB or grey,'
            ' or LoadChannels in its place, as tools/new_config.py writes it for such images'
        )


def pages_of_tiff(file: BinaryIO) -> int:
    """Counts the pages of a TIFF; smaller copies of a page, such as overviews, are none."""
    return _first_page(file)[1]


def _first_page(file: BinaryIO) -> tuple[ImageFileDirectory_v2, int]:
    """Reads the tags of a TIFF's first page, and counts the pages."""
    file.seek(0)
    header = file.read(8)
    if header[2:4] in _BIG:
        header += file.read(8)
    first = tags = ImageFileDirectory_v2(header)
    places, pages = [tags.next], 0
    while places[-1] and places[-1] not in places[:-1]:  # else a damaged file leads in a circle
        file.seek(places[-1])
        tags.load(file)
        pages += not tags.get(254, 0) & _NO_PAGE
        places.append(tags.next)
        tags = ImageFileDirectory_v2(header)
    return first, pages


def _of_tiff(tags: ImageFileDirectory_v2) -> ImageFormat:
    bits, kinds = (_numbers(tags.get(tag, 1)) for tag in (258, 339))
    channels, colours = tags.get(277, 1), tags.get(262, 1)
    extra = _numbers(tags.get(338, ()))
    separate = tags.get(284, 1) == 2
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
    )


def _numbers(value: int | tuple[int, ...]) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,)
