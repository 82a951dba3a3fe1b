"""Reads and validates image and mask files."""

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from mmcv.transforms import LoadImageFromFile
from mmengine import fileio
from PIL import Image, UnidentifiedImageError

from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_files import (
    ORIENTATION,
    decode_image,
    explain_unreadable,
    open_image,
    read_mask,
    require_file,
)
from mmseg_cct.utils.image_format import image_format, require_plain

# The last bytes of a format; some programs append a little.
_ENDS = {'JPEG': b'\xff\xd9', 'PNG': b'IEND'}
_TAIL = 64  # bytes


def explain_failed_load(
    info: Mapping[str, Any], backend_args: dict | None, loader: LoadImageFromFile | None
) -> str | None:
    """Returns the error of the file that kept a sample from loading, if there is one."""
    if info.get('img_path') is None:
        return None
    try:
        image_size(info['img_path'], backend_args, True, loader)
        if 'seg_map_path' in info:
            read_mask(info['seg_map_path'], backend_args)
    except UserError as error:
        return str(error)
    return None


def image_size(
    path: str, backend_args: dict | None, decode: bool, loader: LoadImageFromFile | None = None
) -> tuple[int, int]:
    """Reads width and height that an image has once it is loaded and turned by its EXIF tag.

    Unless the whole file is to be decoded, only its header and its last bytes are read, provided
    that they tell whether the file is complete. The pipeline's `loader` names the file backend and
    the decoder, or decodes by itself (`LoadChannels`); OpenCV decodes by default.
    """
    backend_args = getattr(loader, 'backend_args', None) or backend_args
    flag, backend = (loader.color_type, loader.imdecode_backend) if loader else ('color', None)
    # `LoadChannels` decodes by itself
    load = getattr(loader, 'decode', lambda data: decode_image(data, flag, backend))
    try:
        require_file(path)
        if not decode:
            # OpenCV may know what Pillow does not
            with suppress(UnidentifiedImageError), open_image(path, backend_args) as image:
                if _has_end(image):
                    found = image_format(image.fp)  # type: ignore[attr-defined]
                    if image.getexif().get(ORIENTATION, 1) == 1:
                        if flag != 'unchanged':
                            require_plain(found)
                        return image.size
        height, width = load(fileio.get(path, backend_args)).shape[:2]
        return width, height
    except Exception as error:
        raise UserError(explain_unreadable(path, 'image', error)) from None


def check_image(info: dict[str, Any], loader: LoadImageFromFile | None) -> dict[str, Any]:
    """A transform that rejects an image that is cut off or that its loader would change."""
    if info.get('img_path') is not None:
        image_size(info['img_path'], None, False, loader)
    return info


def loader_in(pipeline: Any) -> LoadImageFromFile | None:
    """Finds the transform of a pipeline that loads its images."""
    return next((t for t in pipeline.transforms if isinstance(t, LoadImageFromFile)), None)


def is_turned(path: str, backend_args: dict | None, loader: LoadImageFromFile | None) -> bool:
    """Tells whether loading turns or mirrors an image by its EXIF tag but keeps its size."""
    flag = loader.color_type if loader else 'color'
    if flag == 'unchanged' or 'ignore_orientation' in flag:
        return False
    with suppress(UnidentifiedImageError), open_image(path, backend_args) as image:
        tag = image.getexif().get(ORIENTATION, 1)
        return tag in (2, 3, 4) or (tag in (5, 6, 7, 8) and image.width == image.height)
    return False


def _has_end(image: Image.Image) -> bool:
    """Tells whether the file's format has a mark at the end and the file has it."""
    mark = _ENDS.get(image.format or '')
    if mark is None:
        return False
    file = image.fp  # type: ignore[attr-defined]
    here = file.tell()
    file.seek(-min(_TAIL, file.seek(0, os.SEEK_END)), os.SEEK_END)
    tail = file.read()
    file.seek(here)
    return mark in tail
