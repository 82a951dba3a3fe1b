"""Reads, validates and writes images and masks, which may be corrupt or on a remote backend."""

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import cv2
import numpy as np
from mmengine import fileio
from PIL import Image, UnidentifiedImageError
from tifffile import TiffFile

from mmseg_cct.errors import UserError, printable
from mmseg_cct.utils.files import write_atomic
from mmseg_cct.utils.text import one_line

from .image_format import (
    ORIENTATION,
    UnsuitableImage,
    image_format,
    open_image,
    require_plain,
    size_of_whole,
)

if TYPE_CHECKING:
    from mmcv.transforms import LoadImageFromFile

IdOfColor = dict[tuple[int, ...], tuple[int, str | os.PathLike]]  # and the first mask that says so


def read_image(path: str | os.PathLike) -> np.ndarray:
    """Reads an image as `decode_image` does: `(H, W, 3)` uint8, BGR, turned by EXIF.

    Raises:
        UnsuitableImage: If it is not 8-bit colour or grey; a corrupt file may raise anything.
    """
    return decode_image(Path(path).read_bytes())


def decode_image(data: bytes, flag: str = 'color', backend: str | None = None) -> np.ndarray:
    """Decodes an image as mmcv's `LoadImageFromFile` does, but notices truncated files.

    `flag` is its `color_type`, `backend` its `imdecode_backend`. The result is `(H, W)` or
    `(H, W, ·)`, BGR, turned by EXIF.

    Raises:
        UnsuitableImage: If the transform would change the image.
        ValueError: If the format is unknown; Pillow may raise nearly anything on a corrupt file.
    """
    if flag != 'unchanged' and backend != 'tifffile':
        require_plain(image_format(data))
    _require_whole(data)
    import mmcv  # here, because it brings torch, which takes seconds

    decoded = mmcv.imfrombytes(data, flag=flag, backend=backend)
    if decoded is None:
        raise ValueError(f'no image that {backend or "OpenCV"} decodes, in 8 or 16 bits')
    return decoded


def decoder_of(loader: 'LoadImageFromFile | None') -> Callable[[bytes], np.ndarray]:
    """Returns what decodes images as a pipeline's loader does, or as MMSegmentation's default."""
    flag, backend = (loader.color_type, loader.imdecode_backend) if loader else ('color', None)
    # `LoadChannels` decodes by itself
    return getattr(loader, 'decode', lambda data: decode_image(data, flag, backend))


def _require_whole(data: bytes) -> None:
    # OpenCV reads a truncated file without an error and makes up the rest. Pillow notices, but it
    # does not know all formats of OpenCV, such as 16-bit colours in a TIFF.
    with suppress(UnidentifiedImageError), open_image(data) as image:
        image.load()


def decode_channels(data: bytes) -> np.ndarray:
    """Decodes all channels of an image, `(H, W, K)` in the file's order and type, not turned.

    OpenCV reads the formats that it does not change, tifffile reads other TIFFs. Both may raise
    nearly any exception on a corrupt file.
    """
    if not image_format(data).opencv_reads:
        return _decode_tiff(data)
    _require_whole(data)
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if pixels is None:
        raise ValueError('no image that OpenCV decodes')
    pixels = np.atleast_3d(pixels)
    return pixels if pixels.shape[2] < 3 else pixels[..., [2, 1, 0, *range(3, pixels.shape[2])]]


def _decode_tiff(data: bytes) -> np.ndarray:
    with TiffFile(io.BytesIO(data)) as file:
        page = file.pages[0]
        pixels, axes = page.asarray(), page.axes
    return np.moveaxis(pixels, axes.index('S'), -1) if 'S' in axes else np.atleast_3d(pixels)


def require_channels(pixels: np.ndarray, channels: Sequence[int]) -> None:
    """Raises `UnsuitableImage` if an image `(H, W, K)` lacks one of the channels."""
    if max(channels) >= pixels.shape[2]:
        expected = f'{max(channels) + 1} or more, for LoadChannels.channels is {tuple(channels)}'
        raise UnsuitableImage(f'{pixels.shape[2]} channels; expected {expected}')


def select_channels(
    pixels: np.ndarray, channels: Sequence[int], value_range: tuple[float, float] | None = None
) -> np.ndarray:
    """Selects channels of an image `(H, W, K)`, counted from 0, and scales their values.

    Of the result, `(H, W, C)`, three channels are reversed to BGR, like all images of
    MMSegmentation. The ends of `value_range` become 0 and 255, in float32, and values outside are
    clipped. Without it, the image has 8 bits and the result is uint8.

    Raises:
        UnsuitableImage: The image has no such channel, or values that are not finite or of another
            type.
    """
    require_channels(pixels, channels)
    if value_range is None and pixels.dtype != np.uint8:
        expected = 'expected 8 bits, or a LoadChannels.value_range'
        raise UnsuitableImage(f'values of type {pixels.dtype}; {expected}')
    if value_range is not None and pixels.dtype == np.uint8 and value_range[1] > 255:
        expected = f'expected more, for LoadChannels.value_range is {value_range}'
        raise UnsuitableImage(f'values of 8 bits; {expected}')
    chosen = pixels[..., list(channels)[::-1] if len(channels) == 3 else list(channels)]
    if chosen.dtype.kind == 'f' and not (finite := np.isfinite(chosen)).all():
        # to fill them would let the network see a made-up value, and a mean of NaN reaches all
        problem = f'{(~finite).any(-1).sum()} pixels are NaN or infinite'
        raise UnsuitableImage(f'{problem}; expected a finite value there, and 255 in the mask')
    if value_range is not None:
        low, high = value_range
        chosen = (chosen.astype(np.float32).clip(low, high) - low) * (255 / (high - low))
    return np.ascontiguousarray(chosen, np.uint8 if value_range is None else np.float32)


def as_rgb(image: np.ndarray) -> np.ndarray:
    """Converts a loaded image `(H, W[, C])` in [0, 255] to `(H, W, 3)` uint8, RGB, for display.

    Three channels are BGR; of more, the first three are shown, of fewer, only the first.
    """
    image = np.atleast_3d(image)
    channels = image.shape[2]
    order = [2, 1, 0] if channels == 3 else [0, 1, 2] if channels > 3 else [0, 0, 0]
    pixels = image[..., order]
    if pixels.dtype != np.uint8:
        pixels = pixels.clip(0, 255).round().astype(np.uint8)
    return np.ascontiguousarray(pixels)


def read_mask(
    path: str | os.PathLike,
    backend_args: dict | None = None,
    id_of_color: IdOfColor | None = None,
) -> np.ndarray:
    """Reads the class ids of a mask as they are in the file: `(H, W)` integers or bools.

    `backend_args` are those of mmengine's file backend. `id_of_color` collects the colours in the
    palettes of many masks, each of which must mean one id.
    """
    with named_if_unreadable(path, 'mask'):
        data = fileio.get(path, backend_args)
        with open_image(data) as image:
            file_format, mode, ids = image.format, image.mode, np.array(image)
            palette = image.getpalette() if mode == 'P' else None
            orientation = image.getexif().get(ORIENTATION, 1)
    if ids.ndim != 2 or ids.dtype.kind not in 'uib':
        expected = 'one channel of integer class ids (a grey or palette PNG)'
        if mode in ('RGB', 'RGBA'):
            expected += ': mmseg-cct import-masks turns colours into ids'
        raise UserError(path, f'a mask of Pillow mode {mode}', expected)
    if file_format in ('JPEG', 'MPO'):
        raise UserError(path, 'a JPEG, which does not keep class ids', 'a PNG')
    if orientation != 1:
        problem = f'EXIF orientation {orientation}, which turns images but not masks'
        raise UserError(path, problem, 'a mask without it, turned as its image is shown')
    if palette and id_of_color is not None:
        _require_one_id(path, np.unique(ids).tolist(), palette, id_of_color)
    return ids


def _require_one_id(
    path: str | os.PathLike, ids: list[int], palette: list[int], id_of_color: IdOfColor
) -> None:
    """Raises an error if a colour of the palette means another id in an earlier mask."""
    colors = list(zip(*(palette[channel::3] for channel in range(3))))
    for index in ids:
        color = colors[index] if index < len(colors) else ()
        if colors.count(color) != 1:  # it fills up the palette
            continue
        first_id, first_path = id_of_color.setdefault(color, (index, path))
        if first_id != index:
            problem = f'the palette has colour {color} as id {index}, {first_path} as id {first_id}'
            expected = 'one order: mmseg-cct import-masks reads such masks by their colours'
            raise UserError(path, problem, expected)


@contextmanager
def named_if_unreadable(path: str | os.PathLike, file_type: str) -> Iterator[None]:
    """Names a file that the body cannot read: decoders raise nearly anything on a corrupt one."""
    try:
        yield
    except Exception as error:
        raise UserError(explain_unreadable(path, file_type, error)) from None


def explain_unreadable(path: str | os.PathLike, file_type: str, reason: object) -> str:
    """Returns a one-line error for an 'image' or 'mask' that cannot be read."""
    if isinstance(reason, FileNotFoundError):
        problem = f'no such file; expected the {file_type} there'
    elif isinstance(reason, (UnsuitableImage, UserError)):
        problem = str(reason).removeprefix(f'{printable(path)}: ')
    else:
        short = one_line(str(reason).replace(str(path), ''))
        problem = f'cannot be read ({short}); expected a readable {file_type}'
    return printable(f'{path}: {problem}')


def write_png(path: Path, image: Image.Image, palette: np.ndarray | None = None) -> None:
    """Writes a PNG and the folders above it.

    A palette `(C, 3)`, uint8 RGB, colours an image of mode L whose values are below C. A photograph
    is compressed less: it takes a quarter of the time and a tenth more bytes.
    """
    if palette is not None:
        image.putpalette(palette.tobytes())
    buffer = io.BytesIO()
    image.save(buffer, format='PNG', compress_level=1 if image.mode == 'RGB' else 6)
    write_atomic(path, buffer.getvalue())


def image_size(
    path: str, backend_args: dict | None, decode: bool, loader: 'LoadImageFromFile | None' = None
) -> tuple[int, int]:
    """Reads width and height that an image has once it is loaded and turned by its EXIF tag.

    Unless the whole file is to be decoded, only its header and its last bytes are read, provided
    that they tell whether the file is complete. The pipeline's `loader` names the file backend and
    the decoder, or decodes by itself (`LoadChannels`); OpenCV decodes by default.
    """
    backend_args = getattr(loader, 'backend_args', None) or backend_args
    with named_if_unreadable(path, 'image'):
        if not decode:
            with _open(path, backend_args) as file:
                if size := size_of_whole(file):
                    if loader is None or loader.color_type != 'unchanged':
                        require_plain(image_format(file))
                    return size
        height, width = decoder_of(loader)(fileio.get(path, backend_args)).shape[:2]
        return width, height


def _open(path: str, backend_args: dict | None) -> BinaryIO:
    # The backends read a whole file, where the header of a local one will do.
    is_local = backend_args is None and '://' not in str(path)
    return open(path, 'rb') if is_local else io.BytesIO(fileio.get(path, backend_args))


def check_image(info: dict[str, Any], loader: 'LoadImageFromFile | None') -> dict[str, Any]:
    """A transform that rejects an image that is cut off or that its loader would change."""
    if info.get('img_path') is not None:
        image_size(info['img_path'], None, False, loader)
    return info
