"""Class ids in colours, and the legend that explains them."""

from collections.abc import Sequence

import numpy as np
from matplotlib.patches import Patch

Palette = Sequence[Sequence[int]] | np.ndarray


def paint(labels: np.ndarray, palette: Palette) -> np.ndarray:
    """Paints class ids `(H, W)` as `(H, W, 3)` uint8, RGB; ids without a colour get white."""
    return full_palette(palette)[labels]


def full_palette(palette: Palette) -> np.ndarray:
    """Completes a palette with white to `(256, 3)` uint8, RGB, for ignored pixels."""
    colours = np.full((256, 3), 255, np.uint8)
    colours[: len(palette)] = np.reshape(palette, (-1, 3))
    return colours


def class_legend(classes: Sequence[str], palette: Palette) -> list[Patch]:
    """Makes a coloured patch for each class, the handles of a legend."""
    return [
        Patch(facecolor='#{:02x}{:02x}{:02x}'.format(*colour), edgecolor='0.6', label=name)
        for name, colour in zip(classes, palette)
    ]
