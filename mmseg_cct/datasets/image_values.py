"""Channels, bits and values of a folder's images, and how to load them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmseg_cct.datasets.files.image_format import image_format
from mmseg_cct.datasets.files.images import decode_channels, named_if_unreadable, require_channels
from mmseg_cct.errors import UserError

_PIXELS = 10_000  # sampled from an image, roughly
_DEPTHS = (8, 10, 12, 14, 16, 32)  # bits that sensors have
_NARROW = 0.25  # share of the range below which the values are stretched
_ENDS = (0.1, 99.9)  # percentiles


class ImageValues(NamedTuple):
    """Settings that load images other than 8-bit RGB or grey."""

    description: str  # of the format, in words
    loader: dict[str, Any]  # config of `LoadChannels`
    mean: list[float]  # of each loaded channel, in the loader's order
    std: list[float]  # likewise


def measure_images(
    images: Sequence[str], channels: Sequence[int] | None = None, bits: int | None = None
) -> ImageValues | None:
    """Looks at images and decides how to load them; None if MMSegmentation's loader will do.

    `channels` and `bits` are the user's. By default every channel except opacity is loaded, with as
    many bits as the values have; values that fill less than a quarter of that range are stretched
    to their own range.

    Raises:
        UserError: If the images are of different kinds or floats, or lack the channels or bits.
    """
    formats = {}
    for path in images:
        with named_if_unreadable(path, 'image'), open(path, 'rb') as file:
            formats[path] = image_format(file)
    first_path, first = next(iter(formats.items()))
    shown = first.describe()
    if channels is None and bits is None and all(f.is_plain for f in formats.values()):
        return None
    # One loader reads all images, so they are of one kind.
    for path, image in formats.items():
        if image[:3] != first[:3]:  # channels, bits and values
            problem = f'{image.describe()}, while {Path(first_path).name} has {shown}'
            raise UserError(path, problem, 'images of one kind')
    if first.values != 'integers':
        expected = 'whole numbers from 0, such as reflectances times 10000 as uint16'
        raise UserError(first_path, shown, expected)
    # Grey gives three channels, as pretrained networks expect; opacity tells them nothing.
    num_channels = first.channels - first.has_opacity
    default = (0, 0, 0) if num_channels == 1 else tuple(range(num_channels))
    chosen = default if channels is None else tuple(channels)
    if max(chosen) >= first.channels:
        key, problem = f'--channels {",".join(map(str, chosen))}', f'{first_path} has {shown}'
        raise UserError(key, problem, f'numbers from 0 to {first.channels - 1}')
    # The statistics are those of the values that the network gets: after the stretching.
    sampled = [_pixels_of(path, chosen, image.no_data) for path, image in formats.items()]
    values = np.concatenate(sampled).astype(np.float64)
    limits = None if first.bits <= 8 and bits is None else _range_of(values, bits)
    if limits is not None:
        low, high = limits
        values = (values.clip(low, high) - low) * (255 / (high - low))
    loader: dict[str, Any] = dict(type='LoadChannels', channels=chosen)
    scaled = '' if limits is None else f', {limits[0]} to {limits[1]} as 0 to 255'
    if first.no_data is not None:
        scaled += f'; {first.no_data:g}, which means no data, is not measured'
    is_all = sorted(chosen) == list(range(first.channels))
    loaded = 'all' if is_all else ', '.join(map(str, chosen))
    return ImageValues(
        f'{shown}, of which {loaded} are loaded{scaled}',
        loader if limits is None else dict(**loader, value_range=limits),
        values.mean(0).round(3).tolist(),
        [spread or 1.0 for spread in values.std(0).round(3).tolist()],
    )


def _pixels_of(path: str, chosen: tuple[int, ...], no_data: float | None) -> np.ndarray:
    """Reads the chosen channels of evenly spaced pixels, `(P, C)`, of those that have data."""
    with named_if_unreadable(path, 'image'):
        pixels = decode_channels(Path(path).read_bytes())
        require_channels(pixels, chosen)  # a grey JPEG among others has one
    flat: np.ndarray = pixels.reshape(-1, pixels.shape[2])
    flat = flat[:: max(len(flat) // _PIXELS, 1), chosen]
    known = (flat != no_data).all(1)
    return flat[known] if known.any() else flat


def _range_of(values: np.ndarray, bits: int | None) -> tuple[int, int]:
    if bits is not None:
        if values.max() >= 2**bits:
            problem = f'the images have values up to {values.max():.0f}'
            raise UserError(f'--bits {bits}', problem, f'{2**bits - 1} at most, or more bits')
        return 0, 2**bits - 1
    highest = 2 ** next(depth for depth in _DEPTHS if values.max() < 2**depth) - 1
    low, high = np.percentile(values, _ENDS)
    if high - low < _NARROW * highest:
        return int(np.floor(low)), max(int(np.ceil(high)), int(np.floor(low)) + 1)
    return 0, highest
