"""Colours of classes: as in Cityscapes if it has the class, else of matplotlib's tab20."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

import matplotlib
import numpy as np

from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import read_utf8
from mmseg_cct.utils.text import error_line

Color = tuple[int, int, int]


def class_colors(
    classes: Sequence[str], chosen: Mapping[str, Color | None] | None = None
) -> list[Color]:
    """Gives each class the color chosen for it, that of Cityscapes, or one that no other has."""
    colors = dict[str, Color]()
    for name in classes:
        color = (chosen or {}).get(name) or _KNOWN.get(_plain(name))
        if color is not None and color not in colors.values():
            colors[name] = color
    unused = (color for color in _further_colors() if color not in colors.values())
    return [colors[name] if name in colors else next(unused) for name in classes]


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
    text = read_utf8(palette, expected)
    try:
        content = json.loads(text)
    except ValueError as error:
        raise UserError(palette, error_line(error, 120), expected) from None
    if not isinstance(content, dict) or not set(content) & set(classes):
        raise UserError(palette, f'no colours of the classes ({", ".join(classes)})', expected)
    for name, color in content.items():
        is_color = isinstance(color, list) and len(color) == 3
        if not is_color or not all(isinstance(c, int) and 0 <= c <= 255 for c in color):
            raise UserError(f'{palette}: {name}', f'{color!r}', '[r, g, b] from 0 to 255')
    return class_colors(classes, {name: tuple(color) for name, color in content.items()})


def _further_colors() -> Iterator[Color]:
    """Yields matplotlib's colours of categories, then, as for more than 60 classes, any."""
    for name in ('tab20', 'tab20b', 'tab20c'):
        colors = matplotlib.colormaps[name].colors  # type: ignore[attr-defined]
        rgb = (255 * np.array(colors)).round().astype(int).tolist()
        yield from map(tuple, rgb[::2] + rgb[1::2])  # the strong ones, then their light shades
    generator = np.random.default_rng(0)
    while True:
        yield tuple(generator.integers(32, 224, 3).tolist())


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
