"""Folders of masks of one class: a bright or opaque region on the rest."""

from collections.abc import Collection
from contextlib import suppress
from functools import partial

import numpy as np
from PIL import Image

from mmseg_cct.errors import UserError

from ..pictures import decode, flat_values
from ..shapes import Annotations, Shape
from ..source import Source
from .colour_masks import LOOKED_AT, LOSSY, Read, mask_files, read_masks, without_values

_LOSSY_FORMATS = 'JPEG', 'MPO', 'WEBP'
_SPREAD = 0.1  # of the variance of a mask's values, within its two clusters
_THIRD = 0.05  # of the upper cluster's pixels, for a value that fills areas to be one of its own


def read(source: Source, name: str, suffix: str, values: Collection[str] = ()) -> Annotations:
    """Reads the brighter of two clusters of values, or what is opaque, as the class `name`.

    `values` are grey values that are classes of their own.
    """
    usual = _usual_level(source, mask_files(source, suffix)[:LOOKED_AT], values)
    make = partial(_binary, name=name, usual=usual)
    classes = {name: None, **dict.fromkeys(values)}
    return Annotations(classes, read_masks(source, suffix, make, values))


def _binary(picture: Image.Image, name: str, usual: float) -> Read:
    """Returns the class where the picture is in the upper of two clusters of values."""
    pixels = _brightness(picture)
    threshold, level = _levels(pixels, picture.format in _LOSSY_FORMATS)
    if level and picture.format in _LOSSY_FORMATS and level < LOSSY:
        raise UserError(f'values up to {level:.0f}', picture.format, 'a PNG')
    if level and not usual / 4 <= level <= usual * 4:
        found = f'values up to {level:.0f}, in other masks {usual:.0f}'
        raise UserError('mask', found, 'masks of one kind, or imports apart')
    return [Shape(name, mask=pixels > threshold)], {}


def _brightness(picture: Image.Image) -> np.ndarray:
    """Returns the values of a mask `(H, W)`: its opacity if that differs, else the highest."""
    if picture.mode == 'P':
        picture = picture.convert('RGBA' if 'transparency' in picture.info else 'RGB')
    pixels = np.asarray(picture)
    if pixels.ndim == 2:
        return pixels.astype(float)
    has_alpha = pixels.shape[2] in (2, 4)
    if has_alpha and (pixels[..., -1] != pixels.flat[pixels.shape[2] - 1]).any():
        return pixels[..., -1].astype(float)
    values = pixels[..., : pixels.shape[2] - has_alpha]
    if len(np.unique(values.reshape(-1, values.shape[2]), axis=0)) > 256:
        raise UserError('picture', 'more than 256 colours', 'a mask, see --mask-suffix')
    return values.max(-1).astype(float)


def _levels(pixels: np.ndarray, is_lossy: bool) -> tuple[float, float]:
    """Finds the threshold between two clusters of values, by Otsu, and the level of the upper one.

    A mask of one value is all 0 or all above the threshold. Without loss, another value that fills
    areas is an id of its own.
    """
    values, counts = np.unique(pixels, return_counts=True)
    if len(values) == 1:
        return 0.0, float(values[0])
    weights = counts / counts.sum()
    below, first = np.cumsum(weights)[:-1], np.cumsum(weights * values)[:-1]
    mean = float(weights @ values)
    between = (mean * below - first) ** 2 / (below * (1 - below))
    cut = int(between.argmax())
    low, high = first[cut] / below[cut], (mean - first[cut]) / (1 - below[cut])
    flat = flat_values(pixels)
    upper = int(counts[cut + 1 :].sum())
    clusters = values[: cut + 1], values[cut + 1 :]
    main = [max(cluster, key=lambda value: flat.get(value, 0)) for cluster in clusters]
    slack = LOSSY if is_lossy else 0
    is_third = any(
        number > _THIRD * upper and min(abs(value - level) for level in main) > slack
        for value, number in flat.items()
    )
    spread = 1 - between[cut] / float(weights @ (values - mean) ** 2)
    if is_third or spread > _SPREAD or low > high / 4:
        shown = ', '.join(f'{value:g}' for value in values[np.argsort(-counts)][:5])
        found = f'values {shown}{", ..." if len(values) > 5 else ""}, not two clusters from 0'
        raise UserError('mask', found, '0 and another value, or --colors NAME=VALUE ...')
    return float(low + high) / 2, float(high)


def _usual_level(source: Source, names: list[str], values: Collection[str]) -> float:
    """Returns the median level of some masks; damaged ones are reported when they are read."""
    levels = []
    for name in names:
        with suppress(UserError):
            picture, _ = without_values(decode(source.read(name)), values)
            levels.append(_levels(_brightness(picture), picture.format in _LOSSY_FORMATS)[1])
    return float(np.median([level for level in levels if level] or [0]))
