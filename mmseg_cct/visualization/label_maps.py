"""Class ids in colours, and the legend that explains them."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from matplotlib import get_data_path
from matplotlib.patches import Patch
from PIL import Image, ImageDraw, ImageFont

Palette = Sequence[Sequence[int]] | np.ndarray


def paint(labels: np.ndarray, palette: Palette) -> np.ndarray:
    """Paints class ids `(H, W)` as `(H, W, 3)` uint8, RGB; ids without a colour become white."""
    return full_palette(palette)[labels]


def full_palette(palette: Palette) -> np.ndarray:
    """Pads a palette to `(256, 3)` uint8, RGB, with white, the colour of ignored pixels."""
    colours = np.full((256, 3), 255, np.uint8)
    colours[: len(palette)] = np.reshape(palette, (-1, 3))
    return colours


def class_legend(classes: Sequence[str], palette: Palette, ignored: bool = False) -> list[Patch]:
    """Makes a legend's handles: a patch for each class and, if `ignored`, for ignored pixels."""
    colours = [*zip(classes, palette), *[('ignored', (255, 255, 255))] * ignored]
    return [
        Patch(facecolor='#{:02x}{:02x}{:02x}'.format(*colour), edgecolor='0.6', label=name)
        for name, colour in colours
    ]


def legend_picture(classes: Sequence[str], palette: Palette, width: int) -> np.ndarray:
    """Draws class names beside their colours, `(h, width, 3)` uint8 RGB, in as many rows as needed.

    The letters grow with the width, from 10 to 28 pixels; a name that is too long is cut.
    """
    size = min(28, max(10, width // 40))
    font, gap, row = _font(size), size // 2, size + size // 2
    places, x, y = [], gap, 0
    for name in classes:
        text = _fitting(str(name), font, width - 3 * gap - size)
        right = x + size + gap + font.getlength(text) + gap
        if x > gap and right > width:
            right, x, y = right - x + gap, gap, y + row
        places.append((x, y, text))
        x = int(right) + gap
    picture = Image.new('RGB', (width, y + row + gap), 'white')
    draw = ImageDraw.Draw(picture)
    for (x, y, text), colour in zip(places, palette):
        box = (x, y + gap, x + size, y + gap + size)
        draw.rectangle(box, tuple(map(int, colour)), (153, 153, 153))
        draw.text((x + size + gap, y + gap + size // 2), text, 'black', font, anchor='lm')
    return np.array(picture)


def _fitting(name: str, font: ImageFont.FreeTypeFont, width: float) -> str:
    """Returns a name in one line, cut to a width in pixels."""
    name = ' '.join(name.encode(errors='backslashreplace').decode().split())
    if font.getlength(name) <= width:
        return name
    while name and font.getlength(name + '…') > width:
        name = name[:-1]
    return name + '…'


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(f'{get_data_path()}/fonts/ttf/DejaVuSans.ttf', size)
