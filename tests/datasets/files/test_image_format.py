import io

import cv2
import numpy as np
import pytest
from PIL import Image
from tiff import pixels_of, tiff_bytes

from mmseg_cct.datasets.files.image_format import (
    ORIENTATION,
    UnsuitableImage,
    image_format,
    size_of_whole,
)
from mmseg_cct.datasets.files.images import (
    decode_channels,
    decode_image,
    image_size,
    read_image,
    read_mask,
)
from mmseg_cct.errors import UserError


def encoded(file_format, tag=None, **options):
    if tag is not None:
        options['exif'] = Image.Exif()
        options['exif'][ORIENTATION] = tag
    buffer = io.BytesIO()
    Image.new('RGB', (30, 20)).save(buffer, file_format, **options)
    return buffer.getvalue()


def png(pixels):
    return cv2.imencode('.png', pixels)[1].tobytes()


def byte(channels):
    return pixels_of(channels, 8, dtype='uint8')


@pytest.mark.parametrize('file_format', ['PNG', 'JPEG', 'WEBP'])
@pytest.mark.parametrize('tag', [None, 3, 6])
def test_a_header_has_the_size_of_an_image_that_is_whole_and_not_turned(file_format, tag):
    content = encoded(file_format, tag)
    size = (30, 20) if file_format != 'WEBP' and tag is None else None
    assert size_of_whole(io.BytesIO(content)) == size
    assert size_of_whole(io.BytesIO(content + bytes(40))) == size  # as some programs append
    for end in (12, -12):
        assert size_of_whole(io.BytesIO(content[:end])) is None


FILES = {
    'grey of 16 bits': (tiff_bytes(pixels_of(1)), '1 channel of 16 bits'),
    'png of 16 bits': (png(pixels_of(3)), '3 channels of 16 bits'),
    'fourth channel': (tiff_bytes(byte(4), 2, extra=(0,)), '4 channels of 8 bits'),
    'five planes': (tiff_bytes(pixels_of(5), separate=True), '5 channels of 16 bits'),
    'floats': (tiff_bytes(byte(3).astype('float32'), 2), '3 channels of 32 bits, floats'),
}


@pytest.mark.parametrize('name', FILES)
def test_what_the_loader_would_change_is_refused_at_every_door(name, tmp_path):
    content, words = FILES[name]
    assert image_format(content).describe() == words
    path = tmp_path / 'x.tif'
    path.write_bytes(content)
    with pytest.raises(UnsuitableImage, match=f'^{words}, which .*new-config'):
        read_image(path)
    for decode in (True, False):
        with pytest.raises(UserError, match=rf'^{path}: {words}, .*; expected 8-bit RGB or grey'):
            image_size(str(path), None, decode)


@pytest.mark.parametrize(
    ('pixels', 'file', 'by_opencv'),
    [
        (pixels_of(1), tiff_bytes(pixels_of(1)), True),
        (pixels_of(4), tiff_bytes(pixels_of(4), 2, extra=(0,)), True),
        (byte(4), png(byte(4)[..., [2, 1, 0, 3]]), True),
        (pixels_of(4), tiff_bytes(pixels_of(4), 2, extra=(2,)), False),  # opacity
        (pixels_of(3), tiff_bytes(pixels_of(3), 2, separate=True), False),
        (pixels_of(5), tiff_bytes(pixels_of(5)), False),
    ],
)
def test_all_channels_are_read_in_the_order_of_the_file(pixels, file, by_opencv):
    assert image_format(file).opencv_reads == by_opencv
    np.testing.assert_array_equal(decode_channels(file), pixels)


@pytest.mark.parametrize(('subfile_type', 'is_page'), [(0, True), (1, False), (5, False)])
def test_overviews_are_no_pages_and_pages_are_refused(tmp_path, subfile_type, is_page):
    """`NewSubfileType` 1 is a smaller copy, 4 a mask of opacity; channels of ImageJ have 0."""
    first, second = (Image.fromarray(byte(1)[..., 0]) for _ in range(2))
    second.encoderinfo = dict(tiffinfo={254: subfile_type})
    path = tmp_path / 'a.tif'
    first.save(path, save_all=True, append_images=[second])
    if not is_page:
        assert decode_image(path.read_bytes()).shape == (6, 8, 3)
        assert read_mask(path).shape == (6, 8)
        return
    for read in (decode_image, decode_channels):
        with pytest.raises(UnsuitableImage, match='2 pages; expected one page'):
            read(path.read_bytes())


def test_values_are_read_as_stored_where_0_is_white():
    content = tiff_bytes(byte(1), 0)
    assert np.array_equal(decode_channels(content), byte(1))
    with pytest.raises(UnsuitableImage):  # which OpenCV inverts
        decode_image(content)
