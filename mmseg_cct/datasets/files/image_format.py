"""Reads channels, bits and opacity of an image from its header."""

import io
import math
import re
from typing import BinaryIO, NamedTuple

from PIL.TiffImagePlugin import ImageFileDirectory_v2

from mmseg_cct.utils.text import counted

_TIFF = (b'II*\0', b'MM\0*', b'II+\0', b'MM\0+')  # the last two are BigTIFF
_BIG = (b'+\0', b'\0+')
_PNG = b'\x89PNG\r\n\x1a\n'
_PNM = re.compile(rb'P[2356](?:\s|#)')
_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}  # by colour type; a palette gives three
_JP2, _SIZE = b'jP  ', b'\xff\x4f\xff\x51'  # of the file; of the sizes in it
_HEADER = 2**16  # bytes in which they are looked for
_NODATA = 42113  # GDAL's tag
# TIFF's photometric interpretations
_GREY, _PALETTE, _CMYK = (0, 1), 3, 5
_THREE_COLOURS = (2, 6, 8)  # RGB, YCbCr, L*a*b*


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
    nodata: float | None = None  # GDAL's value of pixels without data

    def describe(self) -> str:
        """Describes it, such as '4 channels of 16 bits'."""
        floats = ', floating point' if self.kind == 'floats' else ''
        return f'{counted(self.channels, "channel")} of {self.bits} bits{floats}'


class UnsuitableImage(ValueError):
    """An image that the pipeline's loader would change."""


def image_format(file: BinaryIO | bytes) -> ImageFormat:
    """Reads the format of a PNG, TIFF, JPEG 2000 or PNM; others pass as three channels of 8 bits.

    The position in the file is restored. Pillow may raise nearly any exception on a corrupt TIFF.
    """
    if isinstance(file, bytes):
        file = io.BytesIO(file)
    here = file.tell()
    try:
        file.seek(0)
        start = file.read(26)
        if start[:4] in _TIFF:
            return _of_tiff(tiff_tags(file))
        if start[4:8] == _JP2 or start.startswith(_SIZE):
            return _of_jp2(start + file.read(_HEADER))
        if start.startswith(_PNG) and len(start) == 26:
            bits, colour = start[24], start[25]
            # OpenCV drops the opacity of an 8-bit PNG and keeps the colours
            opacity, plain = colour in (4, 6), bits <= 8
            return ImageFormat(_PNG_CHANNELS.get(colour, 3), bits, 'integers', opacity, plain)
        if _PNM.match(start):
            return _of_pnm(start + file.read(_HEADER))
        return ImageFormat(3, 8)
    finally:
        file.seek(here)


def require_plain(found: ImageFormat) -> None:
    """Raises `UnsuitableImage` if `LoadImageFromFile` would change the content of an image."""
    if not found.is_plain:
        raise UnsuitableImage(
            f'{found.describe()}, which LoadImageFromFile would change; expected 8-bit RGB or grey,'
            ' or LoadChannels in its place, as tools/new_config.py writes it for such images'
        )


def _of_pnm(header: bytes) -> ImageFormat:
    kind, _, _, highest = re.sub(rb'#[^\n]*', b'', header[:4096]).split()[:4]
    bits = int(highest).bit_length()
    return ImageFormat(3 if kind in (b'P3', b'P6') else 1, bits, is_plain=bits <= 8)


def tiff_tags(file: BinaryIO) -> ImageFileDirectory_v2:
    """Reads the tags of a TIFF's first page."""
    file.seek(0)
    header = file.read(8)
    if header[2:4] in _BIG:
        header += file.read(8)
    tags = ImageFileDirectory_v2(header)
    file.seek(tags.next)
    tags.load(file)
    return tags


def _of_jp2(start: bytes) -> ImageFormat:
    here = start.find(_SIZE)
    if here < 0:
        return ImageFormat(3, 8)
    channels = int.from_bytes(start[here + 40 : here + 42], 'big')
    depth = start[here + 42]
    bits, kind = depth % 128 + 1, 'signed integers' if depth > 127 else 'integers'
    is_plain = channels in (1, 3) and bits <= 8 and depth < 128
    return ImageFormat(channels, bits, kind, is_plain=is_plain)


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
        nodata=_nodata(tags.get(_NODATA)),
    )


def _nodata(text: str | None) -> float | None:
    try:
        value = float((text or '').strip(' \0'))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _numbers(value: int | tuple[int, ...]) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,)
