"""Reading images that may be corrupt, and writing PNGs as a whole or not at all."""

import io
import os
from pathlib import Path

import mmcv
import numpy as np
from PIL import Image

from mmseg_cct.errors import UserError

from .files import write_whole

IMAGE_SUFFIXES = ('.jpg', '.jpeg', '.png', '.bmp', '.tif', '.tiff', '.webp')


def find_images(folder: str | os.PathLike, suffix: str | None = None) -> dict[str, Path]:
    """Finds the images of a folder and its subfolders.

    Args:
        folder: The folder.
        suffix: End of the names of the images, which is cut off (``_leftImg8bit.png`` for
            Cityscapes); `None` takes every image format and cuts off the extension.

    Returns:
        Paths by name, sorted; a name is relative to the folder, with ``/``.

    Raises:
        UserError: If there is no such folder, it holds no such image, or two images differ in their
            extension only.
    """
    root = Path(folder)
    if not root.is_dir():
        raise UserError(f'{folder}: no such folder; expected a folder of images')
    images: dict[str, Path] = {}
    for path in sorted(root.rglob('*')):
        end = path.suffix if suffix is None else suffix
        is_image = end.lower() in IMAGE_SUFFIXES if suffix is None else path.name.endswith(end)
        if not is_image or not path.is_file():
            continue
        name = path.relative_to(root).as_posix()[: -len(end)]
        if name in images:
            raise UserError(
                f'{path}: differs from {images[name].name} in its extension only; expected one '
                'image for each name'
            )
        images[name] = path
    if not images:
        expected = ', '.join(IMAGE_SUFFIXES) if suffix is None else f'names that end in {suffix}'
        raise UserError(f'{folder}: no image in this folder; expected {expected}')
    return dict(sorted(images.items()))


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
