"""Colours of classes: as in Cityscapes if it has the class, else far from those of the others."""

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import cv2
import matplotlib
import numpy as np
import numpy.typing as npt

from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import read_utf8
from mmseg_cct.utils.text import error_line

Color = tuple[int, int, int]

_FAR = 40  # distance in CIELAB of colours that nobody mixes up


def class_colors(
    classes: Sequence[str], chosen: Mapping[str, Color | None] | None = None
) -> list[Color]:
    """Gives each class the color chosen for it, that of Cityscapes, or one far from all others."""
    colors = dict[str, Color]()
    for name in classes:
        color = (chosen or {}).get(name) or _KNOWN.get(_plain(name))
        if color is not None and color not in colors.values():
            colors[name] = color
    categories = _categories()
    pool = np.array([*categories, *itertools.product(range(0, 256, 36), repeat=3)])
    lab = _lab(pool)
    # far from black and white too, which mean background and ignored
    taken = _lab([*colors.values(), (0, 0, 0), (255, 255, 255)])
    nearest = np.linalg.norm(lab[:, None] - taken, axis=2).min(1)
    for name in classes:
        if name not in colors:
            is_far = nearest[: len(categories)] >= _FAR
            index = int(is_far.argmax() if is_far.any() else nearest.argmax())
            colors[name] = tuple(pool[index].tolist())
            nearest = np.minimum(nearest, np.linalg.norm(lab - lab[index], axis=1))
    return [colors[name] for name in classes]


def chosen_colors(palette: str, classes: Sequence[str]) -> list[Color]:
    """Reads a color for each class that has one there; the others are as in `class_colors`.

    `palette` is a data set of MMSeg, such as `ade`, or a JSON file of [r, g, b] by class.
    """
    # Here, because it takes seconds and a folder's classes need none of it
    from mmseg.utils import get_classes, get_palette
    from mmseg.utils.class_names import dataset_aliases

    if palette in dataset_aliases:
        names, colors = get_classes(palette), map(tuple, get_palette(palette))
        known = {_plain(name): color for name, color in zip(names, colors)}
        return class_colors(classes, {name: known.get(_plain(name)) for name in classes})
    expected = f'a JSON file of [r, g, b] by class, or one of {", ".join(dataset_aliases)}'
    text, chosen = read_utf8(palette, expected), dict[str, Any]()
    try:
        chosen |= {name: tuple(bytes(color)) for name, color in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise UserError(palette, error_line(error, 120), expected) from None
    if not {*chosen} & {*classes}:
        raise UserError(palette, f'no colours of the classes ({", ".join(classes)})', expected)
    return class_colors(classes, chosen)


def _categories() -> list[Color]:
    """Returns matplotlib's colours of categories: the strong ones, then their light shades."""
    colors = matplotlib.colormaps['tab20'].colors  # type: ignore[attr-defined]
    rgb = (255 * np.array(colors)).round().astype(int).tolist()
    return list(map(tuple, rgb[::2] + rgb[1::2]))


def _lab(colors: npt.ArrayLike) -> np.ndarray:
    """Converts RGB `(N, 3)` to CIELAB, whose distances are those that people see."""
    rgb = np.array(colors, np.float32)[None] / 255
    return cv2.cvtColor(rgb, cv2.COLOR_RGB2Lab)[0]


def _plain(name: str) -> str:
    """A class name's letters in lower case, so that `Traffic_Sign` is `traffic sign`."""
    return re.sub('[^a-z]', '', str(name).lower())


# Those of Cityscapes, which people know by sight, by the letters of their names.
_KNOWN = dict(
    background=(0, 0, 0),
    road=(128, 64, 128),
    sidewalk=(244, 35, 232),
    building=(70, 70, 70),
    wall=(102, 102, 156),
    fence=(190, 153, 153),
    pole=(153, 153, 153),
    trafficlight=(250, 170, 30),
    trafficsign=(220, 220, 0),
    vegetation=(107, 142, 35),
    terrain=(152, 251, 152),
    sky=(70, 130, 180),
    person=(220, 20, 60),
    rider=(255, 0, 0),
    car=(0, 0, 142),
    truck=(0, 0, 70),
    bus=(0, 60, 100),
    train=(0, 80, 100),
    motorcycle=(0, 0, 230),
    bicycle=(119, 11, 32),
)
