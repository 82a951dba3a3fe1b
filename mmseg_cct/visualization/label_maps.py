"""Class ids in colours, and the legend that explains them."""

from collections.abc import Sequence

import numpy as np
from matplotlib.patches import Patch

Palette = Sequence[Sequence[int]] | np.ndarray


def paint(labels: np.ndarray, palette: Palette) -> np.ndarray:
    """Paints class ids in their colours.

    Args:
        labels: `(H, W)` class ids; ids without a colour, such as ignored pixels, get white.
        palette: C colours, RGB in [0, 255].

    Returns:
        `(H, W, 3)` uint8, RGB.
    """
    return full_palette(palette)[labels]


def full_palette(palette: Palette) -> np.ndarray:
    """Completes a palette with white, so that it has a colour for ignored pixels too.

    Args:
        palette: C colours, RGB in [0, 255].

    Returns:
        `(256, 3)` uint8, RGB.
    """
    colours = np.full((256, 3), 255, np.uint8)
    colours[: len(palette)] = np.reshape(palette, (-1, 3))
    return colours


def class_legend(classes: Sequence[str], palette: Palette) -> list[Patch]:
    """Makes the handles of a legend of classes.

    Args:
        classes: C names.
        palette: C colours, RGB in [0, 255].

    Returns:
        A coloured patch for each class.
    """
    return [
        Patch(facecolor='#{:02x}{:02x}{:02x}'.format(*colour), edgecolor='0.6', label=name)
        for name, colour in zip(classes, palette)
    ]
