"""Figures as the content of files."""

import io

from matplotlib.figure import Figure


def png_bytes(figure: Figure) -> bytes:
    """Draws a figure as the content of a PNG file, at 100 pixels an inch."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format='png', dpi=100)
    return buffer.getvalue()
