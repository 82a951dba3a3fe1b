"""Figures as the content of files, and legends that fit them."""

import io
import textwrap
from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.typing import LineStyleType

LINE_STYLES: tuple[LineStyleType, ...] = ('-', '--', ':', '-.')

# A character and a line of text of 8 points, and what stands beside a label; in inches.
_CHARACTER, _LINE, _HANDLE = 0.065, 0.17, 0.5


def png_bytes(figure: Figure) -> bytes:
    """Draws a figure as the content of a PNG file, at 100 pixels an inch."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format='png', dpi=100)
    return buffer.getvalue()


def legend_below(figure: Figure, handles: Sequence[Artist]) -> None:
    """Adds a legend below the axes; the figure, of constrained layout, grows by its height.

    It has as many columns as fit; long labels are wrapped.
    """
    width = figure.get_figwidth()
    most = int((width - _HANDLE) / _CHARACTER)
    labels = [textwrap.wrap(str(handle.get_label()), most) or [' '] for handle in handles]
    longest = max(len(line) for lines in labels for line in lines)
    columns = max(1, min(len(labels), int(width / (longest * _CHARACTER + _HANDLE))))
    rows = -(-len(labels) // columns) * max(map(len, labels))
    figure.set_figheight(figure.get_figheight() + rows * _LINE)
    figure.legend(
        handles=handles,
        labels=list(map('\n'.join, labels)),
        loc='outside lower center',
        ncols=columns,
        fontsize=8,
        frameon=False,
    )
