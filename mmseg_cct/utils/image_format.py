"""What an image file holds, read from its header: channels, bits and opacity."""

import io
import re
from typing import BinaryIO, NamedTuple

from PIL.TiffImagePlugin import ImageFileDirectory_v2

_TIFF = (b'II*\0', b'MM\0*', b'II+\0', b'MM\0+')  # the last two are BigTIFF
_BIG = (b'+\0', b'\0+')
_PNG = b'\x89PNG\r\n\x1a\n'
_JP2, _CODESTREAM = b'\0\0\0\x0cjP  ', b'\xffO\xffQ'
_PNM = re.compile(rb'P[2356](?:\s|#)')
_HEADER = 2**20  # bytes: colour profiles come before the size
_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}  # by colour type; a palette gives three
# TIFF's photometric interpretations
_GREY, _PALETTE, _CMYK = (0, 1), 3, 5
_THREE_COLOURS = (2, 6, 8)  # RGB, YCbCr, L*a*b*


class ImageFormat(NamedTuple):
    """Format of an image.

    Attributes:
        channels: Number of channels.
        bits: Bits per channel in the file.
        kind: `'integers'` or `'floats'`.
        has_opacity: Whether the last channel is the opacity of the others.
        is_plain: Whether MMSegmentation's `LoadImageFromFile` reads it unchanged. It converts
            anything to three channels of 8 bits: 12 bits stored in 16 become 4, and a fourth
            channel is taken for opacity, by which the others are multiplied.
        opencv_reads: Whether OpenCV can return all channels unchanged.
    """

    channels: int
    bits: int
    kind: str = 'integers'
    has_opacity: bool = False
    is_plain: bool = True
    opencv_reads: bool = True

    def describe(self) -> str:
        """Describes it, such as '4 channels of 16 bits'."""
        plural = '' if self.channels == 1 else 's'
        floats = ', floating point' if self.kind == 'floats' else ''
        return f'{self.channels} channel{plural} of {self.bits} bits{floats}'


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
            return _of_tiff(file)
        if start.startswith(_PNG) and len(start) == 26:
            return _of_png(bits=start[24], colour=start[25])
        if start.startswith((_JP2, _CODESTREAM)) or _PNM.match(start):
            file.seek(0)
            return _of_wide(file.read(_HEADER))
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


def _of_png(bits: int, colour: int) -> ImageFormat:
    # OpenCV drops the opacity of an 8-bit PNG and keeps the colours
    return ImageFormat(
        _PNG_CHANNELS.get(colour, 3), bits, has_opacity=colour in (4, 6), is_plain=bits <= 8
    )


def _of_wide(header: bytes) -> ImageFormat:
    """Reads the format of a JPEG 2000 or PNM, which hold 8 or 16 bits."""
    if _PNM.match(header):
        kind, _, _, highest = re.sub(rb'#[^\n]*', b'', header[:4096]).split()[:4]
        channels, bits = 3 if kind in (b'P3', b'P6') else 1, int(highest).bit_length()
    else:
        size = header[header.index(_CODESTREAM) :]
        channels, bits = int.from_bytes(size[40:42], 'big'), (size[42] & 127) + 1
    return ImageFormat(channels, bits, is_plain=bits <= 8)


def _of_tiff(file: BinaryIO) -> ImageFormat:
    file.seek(0)
    header = file.read(8)
    if header[2:4] in _BIG:
        header += file.read(8)
    tags = ImageFileDirectory_v2(header)
    file.seek(tags.next)
    tags.load(file)
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
