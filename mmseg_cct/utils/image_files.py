"""Finds, reads and writes image and mask files, which may be corrupt or on a remote backend."""

import io
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import mmcv
import numpy as np
from mmengine import fileio
from PIL import EpsImagePlugin, Image, UnidentifiedImageError

from mmseg_cct.errors import UserError

from .files import write_atomic
from .text import one_line

# What Pillow may open whatever a file is named: by default it starts Ghostscript for PostScript.
_FORMATS = ('BMP', 'DIB', 'GIF', 'JPEG', 'JPEG2000', 'PNG', 'PPM', 'TIFF', 'WEBP')
IMAGE_SUFFIXES = ('.jpg', '.jpeg', '.png', '.bmp', '.tif', '.tiff', '.webp')


def find_files(folder: str | os.PathLike) -> list[Path]:
    """Finds the files of a folder and its subfolders, linked ones too.

    Args:
        folder: The folder.

    Returns:
        Their paths, sorted, and links to what is not there.
    """
    found: list[Path] = []
    todo = [(Path(folder), {os.path.realpath(folder)})]
    while todo:
        here, above = todo.pop()
        for path in here.iterdir():
            if not path.is_dir():
                found.append(path)
            elif (real := os.path.realpath(path)) not in above:  # else a link leads in a circle
                todo.append((path, above | {real}))
    return sorted(found)


def find_masks(folder: str | os.PathLike, suffix: str = '.png') -> dict[str, Path]:
    """Finds the masks of a folder and its subfolders.

    Args:
        folder: The folder.
        suffix: End of their names, which is cut off. Its case does not count: a `.PNG` left out
            would be an image without a mask.

    Returns:
        Paths by name, sorted; a name is relative to the folder, with ``/``.

    Raises:
        UserError: If there is no such folder, or two masks differ in the case of the suffix only.
    """
    root = Path(folder)
    if not root.is_dir():
        raise UserError(f'{folder}: no such folder; expected a folder of masks')
    masks: dict[str, Path] = {}
    for path in find_files(root):
        if path.name.lower().endswith(suffix.lower()):
            _add_by_name(masks, path, root, suffix, 'mask')
    return masks


def find_images(folder: str | os.PathLike, suffix: str | None = None) -> dict[str, Path]:
    """Finds the images of a folder and its subfolders.

    Args:
        folder: The folder.
        suffix: End of the names of the images, which is cut off (``_leftImg8bit.png`` for
            Cityscapes), whose case does not count; `None` takes every image format and cuts off
            the extension.

    Returns:
        Paths by name, sorted; a name is relative to the folder, with ``/``.

    Raises:
        UserError: If there is no such folder, it holds no such image, an image is a link to what is
            not there, or two images differ in their extension only.
    """
    root = Path(folder)
    if not root.is_dir():
        raise UserError(f'{folder}: no such folder; expected a folder of images')
    images: dict[str, Path] = {}
    for path in find_files(root):
        end = path.suffix if suffix is None else suffix
        named = path.name.lower().endswith(end.lower())
        if not (end.lower() in IMAGE_SUFFIXES if suffix is None else named):
            continue
        if path.is_symlink() and not path.exists():
            raise UserError(
                f'{path}: a link to {os.readlink(path)}, which is not there; expected an image'
            )
        _add_by_name(images, path, root, end, 'image')
    if not images:
        expected = ', '.join(IMAGE_SUFFIXES) if suffix is None else f'names that end in {suffix}'
        raise UserError(f'{folder}: no image in this folder; expected {expected}')
    return dict(sorted(images.items()))


def _add_by_name(found: dict[str, Path], path: Path, root: Path, end: str, kind: str) -> None:
    name = path.relative_to(root).as_posix()[: -len(end)]
    if name in found:
        raise UserError(
            f'{path}: differs from {found[name].name} in its extension only; expected one {kind} '
            'for each name'
        )
    found[name] = path


def suffix_of_masks(masks: Collection[str], images: Collection[str]) -> str | None:
    """Finds what the names of all masks have after those of their images, such as `_mask`.

    Args:
        masks: Names of the masks.
        images: Names of the images.

    Returns:
        The end of the names; `None` where they have none in common.
    """
    first = next(iter(masks), '')
    for image in sorted(images, key=len, reverse=True):
        end = first.removeprefix(image)
        if end not in ('', first) and all(
            name.endswith(end) and name[: -len(end)] in images for name in masks
        ):
            return end
    return None


def read_image(path: str | os.PathLike) -> np.ndarray:
    """Reads an image as MMSeg's pipelines do, turned as its EXIF tag says.

    Args:
        path: The file.

    Returns:
        `(H, W, 3)` uint8, BGR. It raises nearly anything on a corrupt file.
    """
    return decode_image(Path(path).read_bytes())


def decode_image(data: bytes, flag: str = 'color', backend: str | None = None) -> np.ndarray:
    """Decodes an image as mmcv's `LoadImageFromFile` does, and notices where it is truncated.

    Args:
        data: The file.
        flag: The transform's `color_type`.
        backend: The transform's `imdecode_backend`; `None` takes mmcv's, OpenCV.

    Returns:
        `(H, W)` or `(H, W, ·)`, BGR, turned as its EXIF tag says.

    Raises:
        ValueError: If the backend does not decode it. Pillow raises nearly anything on a corrupt
            file.
    """
    # OpenCV reads a truncated file without an error and makes up the rest. It knows formats, such
    # as colours of 16 bits in a TIFF, that Pillow does not know.
    with suppress(UnidentifiedImageError), _open(io.BytesIO(data)) as image:
        image.load()
    decoded = mmcv.imfrombytes(data, flag=flag, backend=backend)
    if decoded is None:
        raise ValueError(f'no image that {backend or "OpenCV"} decodes, in 8 or 16 bits')
    return decoded


def read_mask(path: str | os.PathLike, backend_args: dict | None = None) -> np.ndarray:
    """Reads the class ids of a mask.

    Args:
        path: The file.
        backend_args: Arguments of mmengine's file backend.

    Returns:
        `(H, W)` of integers or bools: the ids as they are in the file.

    Raises:
        UserError: If it is missing, unreadable, or no image of one channel of integers.
    """
    try:
        with open_image(path, backend_args) as image:
            image.load()
            ids, mode = np.array(image), image.mode
    except Exception as error:  # Pillow raises nearly anything on a corrupt file
        raise UserError(explain_unreadable(path, 'mask', error)) from None
    if ids.ndim != 2 or ids.dtype.kind not in 'uib':
        raise UserError(
            f'{path}: a mask of Pillow mode {mode}; expected one channel of integer class ids (a '
            f'grey or palette PNG){_way_from_colours(ids) if mode in ("RGB", "RGBA") else ""}'
        )
    return ids


def _way_from_colours(pixels: np.ndarray) -> str:
    if (pixels[..., :3] == pixels[..., :1]).all():
        return ': its three channels are equal, one of them will do'
    return ': docs/own_data.md turns colours into ids'


def open_image(path: str | os.PathLike, backend_args: dict | None = None) -> Image.Image:
    """Opens an image of any file backend with Pillow, which reads the header.

    Args:
        path: The file, or an address such as ``s3://...``, which names its backend itself.
        backend_args: Arguments of mmengine's file backend.

    Returns:
        The image; its pixels are not loaded.
    """
    is_local = backend_args is None and '://' not in str(path)
    return _open(path if is_local else io.BytesIO(fileio.get(path, backend_args)))


def forbid_ghostscript() -> None:
    """Keeps Pillow from starting Ghostscript where a library opens an image of any format."""
    EpsImagePlugin.gs_binary = False


def _open(file: str | os.PathLike | io.BytesIO) -> Image.Image:
    return Image.open(file, formats=_FORMATS)


def explain_unreadable(path: str | os.PathLike, kind: str, reason: object) -> str:
    """Words the one-line error of a file that cannot be read.

    Args:
        path: The file.
        kind: What it should be, 'image' or 'mask'.
        reason: The exception or the words that tell why.

    Returns:
        The line.
    """
    if isinstance(reason, FileNotFoundError):
        return f'{path}: no such file; expected the {kind} there'
    short = one_line(str(reason).replace(str(path), ''))
    return f'{path}: cannot be read ({short}); expected a readable {kind}'


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
    write_atomic(path, buffer.getvalue())
