"""What an image holds by its header, and that other images than 8-bit RGB are refused by name."""

import io
import sys

import cv2
import numpy as np
import pytest
from PIL import Image
from tiff import pixels_of, tiff_bytes

from mmseg_cct.datasets.files.image_format import UnsuitableImage, image_format, pages_of_tiff
from mmseg_cct.datasets.files.images import (
    as_rgb,
    decode_channels,
    decode_image,
    image_size,
    read_image,
    read_mask,
)
from mmseg_cct.errors import UserError


def png(pixels):
    return cv2.imencode('.png', pixels)[1].tobytes()


def byte(channels):
    return pixels_of(channels, 8, dtype='uint8')


FILES = {
    'rgb of 16 bits': (tiff_bytes(pixels_of(3), 2), '3 channels of 16 bits'),
    'grey of 16 bits': (tiff_bytes(pixels_of(1)), '1 channel of 16 bits'),
    'png of 16 bits': (png(pixels_of(3)), '3 channels of 16 bits'),
    'fourth channel': (tiff_bytes(byte(4), 2, extra=(0,)), '4 channels of 8 bits'),
    'opacity': (tiff_bytes(byte(4), 2, extra=(2,)), '4 channels of 8 bits'),
    'five planes': (tiff_bytes(pixels_of(5), separate=True), '5 channels of 16 bits'),
    'floats': (tiff_bytes(byte(3).astype('float32'), 2), '3 channels of 32 bits, floats'),
}
PLAIN = {
    'rgb.tif': tiff_bytes(byte(3), 2),
    'grey.tif': tiff_bytes(byte(1)),
    'rgb.png': png(byte(3)),
    'opacity.png': png(byte(4)),
    'rgb.jpg': cv2.imencode('.jpg', byte(3))[1].tobytes(),
}


@pytest.mark.parametrize('name', FILES)
def test_what_the_loader_would_change_is_refused_at_every_door(name, tmp_path):
    content, words = FILES[name]
    file = io.BytesIO(content)
    file.seek(7)
    assert image_format(file).describe() == words and file.tell() == 7  # left where it was
    path = tmp_path / 'x.tif'
    path.write_bytes(content)
    for read in (decode_image, lambda _: read_image(path)):
        with pytest.raises(UnsuitableImage, match=f'^{words}, which .*/new_config'):
            read(content)
    for decode in (True, False):
        with pytest.raises(UserError, match=rf'^{path}: {words}, .*; expected 8-bit RGB or grey'):
            image_size(str(path), None, decode)


@pytest.mark.parametrize('name', PLAIN)
def test_images_of_8_bits_are_read_as_before(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(PLAIN[name])
    np.testing.assert_array_equal(read_image(path), cv2.imread(str(path), cv2.IMREAD_COLOR))
    assert image_size(str(path), None, False) == (8, 6)
    path.write_bytes(PLAIN[name][:20])
    with pytest.raises(UserError, match=rf'^{path}: cannot be read'):
        image_size(str(path), None, False)


@pytest.mark.parametrize(
    ('pixels', 'file'),
    [
        (pixels_of(3), tiff_bytes(pixels_of(3), 2)),
        (pixels_of(1), tiff_bytes(pixels_of(1))),
        (pixels_of(4), tiff_bytes(pixels_of(4), 2, extra=(0,))),
        (pixels_of(3), png(pixels_of(3)[..., ::-1])),
        (byte(4), png(byte(4)[..., [2, 1, 0, 3]])),
    ],
)
def test_opencv_reads_these_channels(pixels, file):
    np.testing.assert_array_equal(decode_channels(file), pixels)


@pytest.mark.parametrize('colours', [1, 2])
@pytest.mark.parametrize('separate', [True, False])
@pytest.mark.parametrize('channels', [3, 4, 5])
def test_tifffile_reads_the_others(channels, separate, colours):
    pytest.importorskip('tifffile')
    pixels = pixels_of(channels)
    extra = (2,) * (channels - 3) if colours == 2 else ()
    file = tiff_bytes(pixels, colours, extra, separate)
    np.testing.assert_array_equal(decode_channels(file), pixels)


def test_without_tifffile_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, 'tifffile', None)
    with pytest.raises(UserError, match=r'^5 channels of 16 bits in a TIFF: .*mmseg_cct\[tiff\]'):
        decode_channels(FILES['five planes'][0])


def test_any_channels_can_be_looked_at():
    image = np.array([[[10.4, 20.6, 300.0, -1.0]]], np.float32)
    for channels, expected in {
        4: [10, 21, 255],
        3: [255, 21, 10],
        1: [10] * 3,
        2: [10] * 3,
    }.items():
        shown = as_rgb(image[..., :channels])
        assert shown.dtype == np.uint8 and shown[0, 0].tolist() == expected
    assert as_rgb(image[..., 0]).tolist() == [[[10] * 3]]  # MMSeg's `grayscale`


@pytest.mark.parametrize(('kind', 'pages'), [(0, 2), (1, 1), (5, 1)])
def test_overviews_are_no_pages_and_pages_are_refused(tmp_path, kind, pages):
    """`NewSubfileType` 1 is a smaller copy, 4 a mask of opacity; channels of ImageJ have 0."""
    first, second = (Image.fromarray(byte(1)[..., 0]) for _ in range(2))
    second.encoderinfo = dict(tiffinfo={254: kind})
    path = tmp_path / 'a.tif'
    first.save(path, save_all=True, append_images=[second])
    with path.open('rb') as file:
        assert pages_of_tiff(file) == pages
    if pages == 1:
        assert decode_image(path.read_bytes()).shape == (6, 8, 3)
        assert read_mask(path).shape == (6, 8)
        return
    for read in (decode_image, decode_channels):
        with pytest.raises(UnsuitableImage, match='2 pages; expected one page'):
            read(path.read_bytes())
    with pytest.raises(UserError, match='2 pages'):
        image_size(str(path), None, False)
    with pytest.raises(UserError, match='2 pages'):
        read_mask(path)


def test_16_bits_are_no_plain_image():
    for kind, bits in ((np.uint8, 8), (np.uint16, 16)):
        data = cv2.imencode('.png', np.ones((32, 40), kind))[1].tobytes()
        found = image_format(data)
        assert (found.channels, found.bits, found.is_plain) == (1, bits, bits == 8)
