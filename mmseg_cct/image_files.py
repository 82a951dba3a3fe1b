"""Reading images that may be corrupt, and writing PNGs as a whole or not at all."""

import io
import os
from pathlib import Path

import mmcv
import numpy as np
from PIL import Image

from mmseg_cct.files import write_whole


def read_image(path: str | os.PathLike) -> np.ndarray:
    """Reads an image as MMSeg's pipelines do, turned as its EXIF tag says.

    Args:
        path: The file.

    Returns:
        `(H, W, 3)` uint8, BGR.

    Raises:
        ValueError: If OpenCV does not decode it. Pillow raises nearly anything on a corrupt file.
    """
    data = Path(path).read_bytes()
    with Image.open(io.BytesIO(data)) as image:
        image.load()  # OpenCV reads a truncated file without an error and makes up the rest
    decoded = mmcv.imfrombytes(data)
    if decoded is None:
        raise ValueError('not an image format that OpenCV decodes')
    return decoded


def write_png(path: Path, image: Image.Image, palette: np.ndarray | None = None) -> None:
    """Writes a PNG, and the folders above it.

    Args:
        path: The file.
        image: The image; of mode L where there is a palette.
        palette: `(C, 3)` uint8, RGB; makes it a palette PNG, whose values are to be below C.
    """
    if palette is not None:
        image.putpalette(palette.tobytes())
    buffer = io.BytesIO()
    image.save(buffer, format='PNG')
    write_whole(path, buffer.getvalue())
