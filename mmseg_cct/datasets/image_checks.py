"""Reads what a check needs of an image or mask file, and says what is wrong with one."""

import os
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import mmcv
import numpy as np
from mmengine import fileio
from PIL import Image

from mmseg_cct.errors import UserError

# What files of a format end with; programs may append a little.
_ENDS = {'JPEG': b'\xff\xd9', 'PNG': b'IEND'}
_TAIL = 64  # bytes
_ORIENTATION = 0x0112  # the EXIF tag; its values 5 to 8 swap width and height


def explain_unreadable(info: Mapping[str, Any], backend_args: dict | None = None) -> str | None:
    """Looks for the file that made the loading of one sample fail.

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
            return _unreadable(path, 'image', 'not an image format that OpenCV decodes')
    except Exception as error:
        return _unreadable(path, 'image', error)
    try:
        if 'seg_map_path' in info:
            read_mask(info['seg_map_path'], backend_args)
    except UserError as error:
        return str(error)
    return None


def image_size(path: str, backend_args: dict | None, decode: bool) -> tuple[int, int]:
    """Gives the size an image has once it is loaded, turned as its EXIF tag says.

    Args:
        path: The file.
        backend_args: Arguments of mmengine's file backend.
        decode: Whether to decode it in full; else header and end are looked at.

    Returns:
        Width and height.

    Raises:
        UserError: It cannot be read.
    """
    try:
        with _open(path, backend_args) as image:
            if decode or not _has_end(image):
                image.load()
            turned = image.getexif().get(_ORIENTATION, 1) >= 5
            return image.size[::-1] if turned else image.size
    except Exception as error:
        raise UserError(_unreadable(path, 'image', error)) from None


def _has_end(image: Image.Image) -> bool:
    """Whether the file surely goes on to its end: OpenCV makes up the rest of a truncated one."""
    mark = _ENDS.get(image.format or '')
    if mark is None:
        return True
    file = image.fp  # type: ignore[attr-defined]
    here = file.tell()
    file.seek(-min(_TAIL, file.seek(0, os.SEEK_END)), os.SEEK_END)
    tail = file.read()
    file.seek(here)
    return mark in tail


def read_mask(path: str, backend_args: dict | None) -> np.ndarray:
    """Reads the class ids of a mask.

    Args:
        path: The file.
        backend_args: Arguments of mmengine's file backend.

    Returns:
        `(H, W)` ids as they are in the file.

    Raises:
        UserError: It cannot be read, or is no image of one channel.
    """
    try:
        with _open(path, backend_args) as image:
            image.load()
            ids, mode = np.asarray(image), image.mode
    except Exception as error:
        raise UserError(_unreadable(path, 'mask', error)) from None
    if ids.ndim != 2 or ids.dtype.kind not in 'uib':
        raise UserError(
            f'{path}: a mask of Pillow mode {mode}; expected one channel of integer class ids (a '
            'grey or palette PNG)'
        )
    return ids


def _open(path: str, backend_args: dict | None) -> Image.Image:
    # An address (`s3://`, `https://`) names its backend itself, to the pipelines as to mmengine.
    is_local = backend_args is None and '://' not in path
    return Image.open(path if is_local else BytesIO(fileio.get(path, backend_args)))


def _unreadable(path: str, kind: str, reason: object) -> str:
    if isinstance(reason, FileNotFoundError):
        return f'{path}: no such file; expected the {kind} there'
    short = ' '.join(str(reason).replace(str(path), '').split())
    return f'{path}: cannot be read ({short}); expected a readable {kind}'
