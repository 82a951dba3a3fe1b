"""Reads and validates image and mask files."""

import os
from collections.abc import Mapping
from typing import Any

import mmcv
from mmengine import fileio
from PIL import Image

from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_files import explain_unreadable, open_image, read_mask

# The last bytes of a format; some programs append a little.
_ENDS = {'JPEG': b'\xff\xd9', 'PNG': b'IEND'}
_TAIL = 64  # bytes
_ORIENTATION = 0x0112  # the EXIF tag; its values 5 to 8 swap width and height


def explain_failed_load(info: Mapping[str, Any], backend_args: dict | None = None) -> str | None:
    """Finds the file that kept a sample from loading.

    Args:
        info: Data info of the sample.
        backend_args: Arguments of mmengine's file backend.

    Returns:
        One line that names the file, or `None` if image and mask can be read.
    """
    path = info.get('img_path')
    if path is None:
        return None
    try:
        # As the pipeline decodes it: OpenCV refuses some files that Pillow opens.
        if mmcv.imfrombytes(fileio.get(path, backend_args)) is None:
            return explain_unreadable(path, 'image', 'not an image format that OpenCV decodes')
    except Exception as error:
        return explain_unreadable(path, 'image', error)
    try:
        if 'seg_map_path' in info:
            read_mask(info['seg_map_path'], backend_args)
    except UserError as error:
        return str(error)
    return None


def image_size(path: str, backend_args: dict | None, decode: bool) -> tuple[int, int]:
    """Reads the size that an image has once it is loaded, turned as its EXIF tag says.

    Args:
        path: The file.
        backend_args: Arguments of mmengine's file backend.
        decode: Whether to decode all of it; else only its header and its last bytes are read.

    Returns:
        Width and height in pixels.

    Raises:
        UserError: If it is missing or cannot be read.
    """
    try:
        with open_image(path, backend_args) as image:
            if decode or not _has_end(image):
                image.load()
            turned = image.getexif().get(_ORIENTATION, 1) >= 5
            return image.size[::-1] if turned else image.size
    except Exception as error:
        raise UserError(explain_unreadable(path, 'image', error)) from None


def _has_end(image: Image.Image) -> bool:
    """Tells whether the file is whole: OpenCV makes up the rest of a truncated one."""
    mark = _ENDS.get(image.format or '')
    if mark is None:
        return True
    file = image.fp  # type: ignore[attr-defined]
    here = file.tell()
    file.seek(-min(_TAIL, file.seek(0, os.SEEK_END)), os.SEEK_END)
    tail = file.read()
    file.seek(here)
    return mark in tail
