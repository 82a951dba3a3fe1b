"""Georeferences of masks, those of their images."""

import io
import os
from pathlib import Path

import numpy as np
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from mmseg_cct.utils.files import write_atomic
from mmseg_cct.utils.log import warn

from .image_format import tiff_tags

# GeoTIFF's scale, tie points, transformation, and the coordinate system's three tags.
_TAGS = (33550, 33922, 34264, 34735, 34736, 34737)
# GeoJP2's box, which holds a GeoTIFF of one pixel.
_BOX = bytes.fromhex('b14bf8bd083d4b43a5ae8cd7d5a6ce03')
_HEADER = 2**16  # bytes in which the box is looked for


def georeference(path: Path) -> ImageFileDirectory_v2 | None:
    """Reads where on earth a GeoTIFF or GeoJP2 lies: its tags, or None."""
    with path.open('rb') as file:
        start = file.read(_HEADER)
        if _BOX in start:
            found = tiff_tags(io.BytesIO(start.split(_BOX, 1)[1]))
        elif start[:2] in (b'II', b'MM'):
            found = tiff_tags(file)
        else:
            if b'gml:' in start:
                warn(f'{path}: its georeference is GML, which the mask loses; expected GeoTIFF')
            return None
    tags = ImageFileDirectory_v2()
    for tag in _TAGS:
        if tag in found:
            tags.tagtype[tag] = found.tagtype[tag]
            tags[tag] = found[tag]
    return tags if len(tags) else None


def write_geotiff(
    path: Path, ids: np.ndarray, palette: np.ndarray, tags: ImageFileDirectory_v2
) -> None:
    """Writes class ids `(H, W)` uint8, with a palette `(C, 3)` and the tags of an image."""
    image, buffer = Image.fromarray(ids), io.BytesIO()
    image.putpalette(palette.tobytes())
    image.save(buffer, format='TIFF', tiffinfo=tags, compression='tiff_adobe_deflate')
    write_atomic(path, buffer.getvalue())


def world_file(image: Path) -> Path | None:
    """Finds an image's world file, its place on earth as text.

    It is named by the first and last letter of the format, such as `.jgw`, or by all of them.
    """
    end = image.suffix
    suffixes = [f'{end[:2]}{end[-1:]}w', f'{end}w', '.wld']
    paths = [image.with_suffix(each) for one in suffixes for each in (one, one.upper())]
    return next((path for path in paths if os.path.isfile(path)), None)  # its name may be too long
