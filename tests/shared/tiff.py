"""TIFF files of any channels, which no library of the tests writes."""

import io

import numpy as np
from PIL.TiffImagePlugin import ImageFileDirectory_v2


def tiff_bytes(pixels, colours=1, extra=(), separate=False, no_data=None):
    """An uncompressed TIFF of an image `(H, W, C)`; `colours` is 1 for grey and 2 for RGB."""
    height, width, channels = pixels.shape
    data = np.moveaxis(pixels, 2, 0) if separate else pixels
    planes = channels if separate else 1
    content, size = data.tobytes(), data.nbytes // planes
    tags = ImageFileDirectory_v2(b'II*\0\0\0\0\0')
    tags[256], tags[257], tags[258] = width, height, (8 * pixels.itemsize,) * channels
    tags[259], tags[262], tags[277], tags[278] = 1, colours, channels, height
    tags[273], tags[279] = tuple(i * size for i in range(planes)), (size,) * planes
    tags[284] = 2 if separate else 1
    tags[339] = (3 if pixels.dtype.kind == 'f' else 1,) * channels
    if extra:
        tags[338] = extra
    if no_data is not None:
        tags.tagtype[42113], tags[42113] = 2, str(no_data)
    file = io.BytesIO()
    tags.save(file)
    return file.getvalue() + content


def pixels_of(channels, bits=12, size=(6, 8), dtype='uint16'):
    """Random values of that many bits."""
    return np.random.default_rng(0).integers(0, 2**bits, (*size, channels)).astype(dtype)
