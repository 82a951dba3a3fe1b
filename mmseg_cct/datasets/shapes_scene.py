"""Synthetic scenes with their masks.

A scene shows a few objects on a cluttered ground. An object's class shows in three ways, each of
them noisy: its outline (turned, stretched, overlapped, cut by the border), its texture (now and
then that of another class) and its hue (spread around the class's own, under coloured light). A few
labelled scenes hold a few of the combinations; many unlabelled ones hold them all and tie the cues
together, because an object carries all of them at once.
"""

import functools
from collections.abc import Callable, Sequence

import cv2
import numpy as np

# Probability that an object wears the texture of a random class.
TEXTURE_SWAP = 0.05
# Standard deviation, in degrees, of an object's hue around that of its class; the hues of the
# classes are 60 degrees apart.
HUE_SPREAD = 8.0
# Half the extent of an object, as a fraction of the scene's side.
RADIUS = (0.2, 0.34)
# Fewest and most objects in a scene.
OBJECTS = (1, 3)
# Largest saturation of the ground, and of the lines and blots on it.
GROUND_SATURATION, CLUTTER_SATURATION = 0.3, 0.5
# Most lines and blots on the ground.
CLUTTER = 4
# How far the light moves each colour channel.
TINT = 0.1
# Memory for synthetic scenes of one size, in each process.
_CACHE_BYTES = 2**26


def draw_scene(seed: int, number: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws a scene of `size` pixels a side: a pure function of its arguments.

    Returns the image ``(size, size, 3)`` uint8 in BGR and class ids ``(size, size)`` uint8, both
    read-only because all calls share them.
    """
    return _drawer(size)(seed, number)


@functools.cache
def _drawer(size: int) -> Callable[[int, int], tuple[np.ndarray, np.ndarray]]:
    """Returns a function that draws scenes of one size, and caches up to `_CACHE_BYTES` of them."""
    keep = functools.lru_cache(_CACHE_BYTES // (4 * size**2))
    return keep(functools.partial(_draw_scene, size=size))


def _draw_scene(seed: int, number: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng((seed, number))
    image = _draw_ground(rng, size)
    seg_map = np.zeros((size, size), np.uint8)
    labels = rng.integers(1, len(_OUTLINES) + 1, rng.integers(*OBJECTS, endpoint=True))
    # The classes take turns, so that a few labelled scenes in a row show every one of them.
    labels[-1] = 1 + number % len(_OUTLINES)
    for label in labels:
        _draw_object(rng, image, seg_map, int(label))

    shade = 1.0 + rng.uniform(0.0, 0.35) * _smooth_noise(rng, size, 2)[..., None]
    tint = rng.uniform(1.0 - TINT, 1.0 + TINT, 3) * rng.uniform(0.75, 1.15)
    image = cv2.GaussianBlur(image * shade * tint, (3, 3), rng.uniform(0.2, 0.8))
    image = image + rng.uniform(0.0, 0.04) * rng.standard_normal(image.shape)
    image = (image[..., ::-1].clip(0.0, 1.0) * 255.0).astype(np.uint8)
    image.flags.writeable = seg_map.flags.writeable = False
    return image, seg_map


def _draw_ground(rng: np.random.Generator, size: int) -> np.ndarray:
    """Draws a mottled ground with lines and blots on it, ``(size, size, 3)`` float32 RGB."""
    dark, light = (
        _rgb(rng.uniform(0.0, 360.0), rng.uniform(0.0, GROUND_SATURATION), rng.uniform(0.2, 0.9))
        for _ in range(2)
    )
    mix = 0.5 + 0.5 * _smooth_noise(rng, size, int(rng.integers(2, 6)))[..., None]
    image = dark + (light - dark) * mix
    image += np.float32(rng.uniform(0.0, 0.15)) * _smooth_noise(rng, size, size // 3)[..., None]
    for _ in range(rng.integers(0, CLUTTER + 1)):
        saturation = rng.uniform(0.0, CLUTTER_SATURATION)
        color = _rgb(rng.uniform(0.0, 360.0), saturation, rng.uniform(0.2, 1.0))
        start, end = rng.integers(0, size, (2, 2)).tolist()
        if rng.random() < 0.6:
            thickness = int(rng.integers(1, 3))
            cv2.line(image, start, end, color.tolist(), thickness, cv2.LINE_AA)
        else:
            axes = rng.integers(1, size // 16, 2, endpoint=True).tolist()
            turn = rng.uniform(0.0, 180.0)
            cv2.ellipse(image, start, axes, turn, 0.0, 360.0, color.tolist(), -1, cv2.LINE_AA)
    return image


def _draw_object(
    rng: np.random.Generator, image: np.ndarray, seg_map: np.ndarray, label: int
) -> None:
    """Draws one object of class `label` into image and class ids, in place."""
    size = image.shape[0]
    radius = size * rng.uniform(*RADIUS)
    center = rng.uniform(0.08 * size, 0.92 * size, 2)
    stretch = (rng.uniform(0.75, 1.0), 1.0)
    turn = rng.uniform(0.0, 2.0 * np.pi)
    rotation = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    # In sixteenths of a pixel, as `shift=4` tells OpenCV.
    placed = (part * stretch @ rotation * radius + center for part in _OUTLINES[label - 1])
    outlines = [(outline * 16.0).round().astype(np.int32) for outline in placed]
    mask = np.zeros((size, size), np.uint8)
    cv2.fillPoly(mask, outlines, 1, shift=4)

    is_swapped = rng.random() < TEXTURE_SWAP
    texture = _TEXTURES[rng.integers(len(_TEXTURES)) if is_swapped else label - 1]
    period, turn = size * rng.uniform(0.10, 0.16), rng.uniform(0.0, np.pi)
    y, x = np.mgrid[:size, :size].astype(np.float32)
    x, y = (x - center[0]) / period, (y - center[1]) / period
    u = np.cos(turn) * x + np.sin(turn) * y + rng.uniform(0.0, 1.0)
    v = np.cos(turn) * y - np.sin(turn) * x + rng.uniform(0.0, 1.0)

    hue = 60.0 * (label - 1) + HUE_SPREAD * rng.standard_normal()
    saturation, value = rng.uniform(0.5, 0.9), rng.uniform(0.5, 1.0)
    light = _rgb(hue, saturation, value)
    dark = _rgb(hue + 12.0 * rng.standard_normal(), saturation, value * rng.uniform(0.3, 0.75))
    paint = dark + (light - dark) * texture(u, v)[..., None]
    alpha = cv2.GaussianBlur(mask.astype(np.float32), (3, 3), 0.6)[..., None]
    image += alpha * (paint - image)
    seg_map[mask == 1] = label


def _smooth_noise(rng: np.random.Generator, size: int, cells: int) -> np.ndarray:
    """Enlarges a coarse random grid: ``(size, size)`` float32, about in [-1, 1]."""
    coarse = rng.uniform(-1.0, 1.0, (cells, cells)).astype(np.float32)
    return cv2.resize(coarse, (size, size), interpolation=cv2.INTER_CUBIC)


def _rgb(hue: float, saturation: float, value: float) -> np.ndarray:
    """Converts a colour: hue in degrees, the others and the result in [0, 1]."""
    hsv = np.array([[[hue % 360.0, saturation, value]]], np.float32)
    return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)[0, 0]


def _polygon(corners: int, radius: float | Sequence[float] = 1.0) -> np.ndarray:
    """Returns the corners of a polygon around the origin; several radii repeat around it."""
    angle = 2.0 * np.pi * np.arange(corners) / corners
    radii = np.resize(radius, corners)
    return np.stack([radii * np.cos(angle), radii * np.sin(angle)], axis=1)


_CROSS = np.array([(0.36, 1.05), (0.36, 0.36), (1.05, 0.36)])

# The outlines of an object in the unit circle, by foreground class. A second outline is a hole.
_OUTLINES: tuple[list[np.ndarray], ...] = (
    [_polygon(32, 0.9)],
    [_polygon(4, 1.1)],
    [_polygon(3, 1.2)],
    [_polygon(10, (1.15, 0.5))],
    # The corners of one arm's end and its neighbours, mirrored into the four quadrants.
    [np.concatenate([_CROSS, _CROSS[::-1] * (1, -1), -_CROSS, _CROSS[::-1] * (-1, 1)])],
    [_polygon(32), _polygon(32, 0.5)],
)

# Textures by foreground class, from coordinates in periods to values in [0, 1].
_TEXTURES: tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], ...] = (
    # circles
    lambda u, v: 0.5 + 0.5 * np.sin(2.0 * np.pi * np.hypot(u, v)),
    # checks
    lambda u, v: (np.floor(u) + np.floor(v)) % 2.0,
    # stripes
    lambda u, v: (u % 1.0 < 0.5).astype(np.float32),
    # a slow gradient
    lambda u, v: 0.5 + 0.25 * np.sin(0.6 * u) + 0.25 * np.sin(0.6 * v),
    # dots
    lambda u, v: (np.hypot(u % 1.0 - 0.5, v % 1.0 - 0.5) < 0.3).astype(np.float32),
    # a grid
    lambda u, v: (np.maximum(abs(u % 1.0 - 0.5), abs(v % 1.0 - 0.5)) > 0.375).astype(np.float32),
)
