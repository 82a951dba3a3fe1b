"""Colours of classes: as in Cityscapes if it has the class, else of matplotlib's tab20."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

import matplotlib
import numpy as np
from mmseg.utils import get_classes, get_palette
from mmseg.utils.class_names import dataset_aliases

from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import read_utf8
from mmseg_cct.utils.text import error_line

Colour = tuple[int, int, int]


def class_colours(
    classes: Sequence[str], chosen: Mapping[str, Colour | None] | None = None
) -> list[Colour]:
    """Gives each class the colour chosen for it, that of Cityscapes, or one that no other has."""
    own = dict[str, Colour]()
    for name in classes:
        colour = (chosen or {}).get(name) or _KNOWN.get(_plain(name))
        if colour is not None and colour not in own.values():
            own[name] = colour
    rest = (colour for colour in _other_colours() if colour not in own.values())
    return [own[name] if name in own else next(rest) for name in classes]


def chosen_colours(palette: str, classes: Sequence[str]) -> list[Colour]:
    """Reads a colour for each class that has one there; the others are as in `class_colours`.

    `palette` is a data set of MMSeg, such as `ade`, or a JSON file of [r, g, b] by class.
    """
    if palette in dataset_aliases:
        names, colours = get_classes(palette), map(tuple, get_palette(palette))
        known = {_plain(name): colour for name, colour in zip(names, colours)}
        return class_colours(classes, {name: known.get(_plain(name)) for name in classes})
    expected = f'a JSON file of [r, g, b] by class, or one of {", ".join(dataset_aliases)}'
    text = read_utf8(palette, expected)
    try:
        content = json.loads(text)
    except ValueError as error:
        raise UserError(palette, error_line(error, 120), expected) from None
    if not isinstance(content, dict) or not set(content) & set(classes):
        raise UserError(palette, f'no colours of the classes ({", ".join(classes)})', expected)
    for name, colour in content.items():
        is_colour = isinstance(colour, list) and len(colour) == 3
        if not is_colour or not all(isinstance(c, int) and 0 <= c <= 255 for c in colour):
            raise UserError(f'{palette}: {name}', f'{colour!r}', '[r, g, b] from 0 to 255')
    return class_colours(classes, {name: tuple(colour) for name, colour in content.items()})


def _other_colours() -> Iterator[Colour]:
    """Yields matplotlib's colours of categories, then, as for more than 60 classes, any."""
    for name in ('tab20', 'tab20b', 'tab20c'):
        listed = matplotlib.colormaps[name].colors  # type: ignore[attr-defined]
        rgb = (255 * np.array(listed)).round().astype(int).tolist()
        yield from map(tuple, rgb[::2] + rgb[1::2])  # the strong ones, then their light shades
    generator = np.random.default_rng(0)
    while True:
        yield tuple(generator.integers(32, 224, 3).tolist())


def _plain(name: str) -> str:
    """A class name's letters in lower case, so that `Traffic_Sign` is `traffic sign`."""
    return re.sub('[^a-z]', '', str(name).lower())


# By their names, which people know by sight.
_KNOWN = {
    _plain(name): tuple(colour)
    for name, colour in zip(get_classes('cityscapes'), get_palette('cityscapes'))
} | dict(background=(0, 0, 0))
