"""Figures as the content of files, and legends that fit them."""

import io
from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.figure import Figure

_WIDTH, _LINE = 2.0, 0.17  # of an entry and of a line of a legend, in inches


def png_bytes(figure: Figure, dpi: float = 100) -> bytes:
    """Renders a figure as the content of a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format='png', dpi=dpi)
    return buffer.getvalue()


def outer_legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Adds a legend below the axes of a figure in constrained layout, which grows by its height."""
    columns = max(1, int(figure.get_figwidth() / _WIDTH))
    figure.set_figheight(figure.get_figheight() + _LINE * -(-len(handles) // columns))
    look: Any = dict(loc='outside lower center', fontsize=8, frameon=False)
    figure.legend(handles=list(handles), ncols=columns, **look)
