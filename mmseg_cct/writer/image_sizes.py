"""The size at which a network sees images: resized ones, or crops and windows of whole ones."""

from collections.abc import Mapping
from math import ceil
from typing import Any, NamedTuple

from mmseg_cct.datasets.files.object_widths import SMALLEST

from .backbones import Backbone

Size = tuple[int, int]  # width and height in pixels

_SHORTEST_CROP = 96  # pixels, if no crop is chosen
_NAMED = 8  # classes


class ImageSizes(NamedTuple):
    """Sizes of a config, and what to tell about them."""

    size: Size  # of whole images
    crop: Size  # of training crops
    # `model.test_cfg` that predicts images at their own size in windows; else they are resized
    windows: dict[str, Any] | None
    notes: tuple[str, ...]


def choose_sizes(
    images: Size,
    widths: Mapping[str, float],
    backbone: Backbone,
    longest: int,
    size: Size | None = None,
    crop: Size | None = None,
    may_window: bool = True,
) -> ImageSizes:
    """Fits images into a longest side, or crops them where the objects of a class would disappear.

    `images` is their typical size, `widths` those of the objects of each class; `size` and `crop`
    are the user's.
    """
    stride, is_chosen = backbone.stride, size is not None
    size = size or fitted(images, stride, longest)
    if crop is None:
        crop = size
        if backbone.halves_crops and min(size) >= 2 * _SHORTEST_CROP:
            width, height = (-(-side // 2 // stride) * stride for side in size)
            crop = width, height
    # rounding to the stride is no shrinking
    shrinks = max(images) > max(size) + stride
    scale = min(new / old for new, old in zip(size, images)) if shrinks else 1.0
    thin = [name for name, width in widths.items() if width * scale < SMALLEST]
    notes, windows = [], None
    shown = f'{size[0]}x{size[1]}'
    if scale < 1 and thin and not is_chosen and may_window:
        window, size, scale = size[::-1], fitted(images, stride, max(images)), 1.0
        steps = 2 * window[0] // 3, 2 * window[1] // 3
        windows = dict(mode='slide', crop_size=window, stride=steps)
        sides = zip(images[::-1], window, steps)
        down, across = (ceil(max(image - part, 0) / step) + 1 for image, part, step in sides)
        lost = f'at {shown}, thin objects would disappear ({", ".join(thin[:_NAMED])})'
        crops = f'it trains on crops at full size and predicts {down * across} windows an image'
        notes.append(f'{lost}, so {crops}; faster: --preset quick, or --size {shown}')
    elif scale < 1:
        notes.append(f'images of {images[0]}x{images[1]} are resized to {shown} (--size)')
    return ImageSizes(size, crop, windows, tuple(notes))


def fitted(images: Size, stride: int, longest: int) -> Size:
    """The size of images in multiples of the stride, and of a longest side at most."""
    scale = min(longest / max(images), 1.0)
    width, height = (max(int(side * scale) // stride, 1) * stride for side in images)
    return width, height
