"""Figures as the content of files, and legends that fit them."""

import io
import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.text import Text

# In inches: a character and a line of text of 8 points, and the space beside a label.
_CHARACTER, _LINE, _HANDLE = 0.065, 0.17, 0.5


def png_bytes(figure: Figure, dpi: float = 100) -> bytes:
    """Renders a figure as the content of a PNG file; text between two `$` is no maths."""
    buffer = io.BytesIO()
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    with rc_context({'text.parse_math': False}):  # for tick labels, which are made when drawn
        figure.savefig(buffer, format='png', dpi=dpi)
    return buffer.getvalue()


def outer_legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Adds a legend outside the axes of a figure, in constrained layout, which grows by its height.

    The legend has as many columns as fit; long labels are wrapped.
    """
    width = figure.get_figwidth()
    max_length = int((width - _HANDLE) / _CHARACTER)
    labels = [textwrap.wrap(str(handle.get_label()), max_length) or [' '] for handle in handles]
    longest = max(len(line) for lines in labels for line in lines)
    columns = max(1, min(len(labels), int(width / (longest * _CHARACTER + _HANDLE))))
    rows = -(-len(labels) // columns) * max(map(len, labels))
    figure.set_figheight(figure.get_figheight() + rows * _LINE)
    look: Any = dict(loc='outside lower center', ncols=columns, fontsize=8, frameon=False)
    figure.legend(handles=handles, labels=list(map('\n'.join, labels)), **look)
