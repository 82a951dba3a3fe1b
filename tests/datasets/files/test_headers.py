"""Headers that are read without a decoder say what Pillow and OpenCV say."""

import io
import struct
import zlib

import cv2
import numpy as np
import pytest
from PIL import Image

from mmseg_cct.datasets.files.headers import ORIENTATION, read_header
from mmseg_cct.datasets.files.images import image_size


def encoded(kind, mode='RGB', tag=None, order='II', **options):
    image, buffer = Image.new(mode, (30, 20)), io.BytesIO()
    if tag is not None:
        exif = Image.Exif()
        exif.endian = '<' if order == 'II' else '>'
        exif[270], exif[ORIENTATION] = 'described', tag
        options['exif'] = exif
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def header(content):
    return read_header(io.BytesIO(content))


def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))


def exif_at_the_end(content):
    """Moves the orientation behind the pixels, where Pillow finds it only after decoding them."""
    start = content.index(b'eXIf') - 4
    (length,) = struct.unpack('>I', content[start : start + 4])
    moved, end = content[start : start + length + 12], content.index(b'IEND') - 4
    return content[:start] + content[start + length + 12 : end] + moved + content[end:]


@pytest.mark.parametrize('kind', ['PNG', 'JPEG'])
@pytest.mark.parametrize('order', ['II', 'MM'])
@pytest.mark.parametrize('tag', [None, 1, 3, 6])
def test_size_and_orientation(kind, order, tag):
    content = encoded(kind, tag=tag, order=order)
    found = header(content)
    assert (found.size, found.orientation) == ((30, 20), tag or 1)
    assert found.format == (3, 8, *found.format[2:]) and found.format.is_plain
    if kind == 'PNG' and tag:
        assert header(exif_at_the_end(content)).orientation == tag


@pytest.mark.parametrize(
    ('content', 'bits'),
    [
        (encoded('PNG', 'I;16'), (1, 16)),
        (encoded('PNG', 'RGBA'), (4, 8)),
        (encoded('PNG', 'P'), (3, 1)),
        (encoded('JPEG', 'L'), (3, 8)),
        (encoded('JPEG', progressive=True), (3, 8)),
        (encoded('JPEG', icc_profile=bytes(9000)), (3, 8)),  # longer than what is read at first
    ],
)
def test_channels_and_bits(content, bits):
    assert header(content).format[:2] == bits and header(content).size == (30, 20)


@pytest.mark.parametrize('kind', ['PNG', 'JPEG'])
def test_what_is_not_whole_is_left_to_a_decoder(kind, tmp_path):
    content = encoded(kind)
    end = content[-12:]
    for broken in (content[:20], content[:-12], content[:15] + end, content[:2] + end, b'', end):
        assert header(broken) is None
    assert header(content + bytes(40)) is not None  # some programs append a little
    assert header(encoded('WEBP')) is None and header(encoded('BMP')) is None


def test_a_turned_image_has_the_size_that_opencv_gives(tmp_path):
    for kind, tag in (('PNG', 6), ('JPEG', 6), ('JPEG', 3)):
        path = tmp_path / f'a.{kind.lower()}'
        path.write_bytes(encoded(kind, tag=tag))
        shown = cv2.imread(str(path)).shape[:2]
        assert image_size(str(path), None, decode=False) == shown[::-1]


def test_no_pixel_is_decoded(tmp_path, monkeypatch):
    for kind in ('png', 'jpg'):
        path = tmp_path / f'a.{kind}'
        cv2.imwrite(str(path), np.zeros((20, 30, 3), np.uint8))
        monkeypatch.setattr(Image, 'open', None)
        monkeypatch.setattr(cv2, 'imdecode', None)
        assert image_size(str(path), None, decode=False) == (30, 20)
