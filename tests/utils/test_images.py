"""The size of an image, from as little of its file as tells that the file is whole."""

import cv2
import numpy as np
import pytest
from PIL import Image

from mmseg_cct.errors import UserError
from mmseg_cct.utils import images
from mmseg_cct.utils.images import image_size


@pytest.fixture(params=['jpg', 'png'])
def image(request, tmp_path):
    path = tmp_path / f'a.{request.param}'
    cv2.imwrite(str(path), np.random.default_rng(0).integers(0, 256, (16, 24, 3), np.uint8))
    return path


def test_only_header_and_end_are_read(image, monkeypatch):
    assert image_size(str(image), None, decode=True) == (24, 16)
    monkeypatch.setattr(images, 'decode_image', None)  # nothing may be decoded
    assert image_size(str(image), None, decode=False) == (24, 16)


def test_a_truncated_image_with_a_good_header_and_bytes_after_the_end(image):
    data = image.read_bytes()
    image.write_bytes(data[:-100])
    with pytest.raises(UserError, match=rf'^{image}: cannot be read \('):
        image_size(str(image), None, decode=False)
    image.write_bytes(data + bytes(10_000))  # some cameras append a film
    assert image_size(str(image), None, decode=False) == (24, 16)


def test_a_tag_turns_an_image_and_may_keep_its_size(tmp_path):
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.new('RGB', (24, 16)).save(tmp_path / 'a.png', exif=turned)
    assert image_size(str(tmp_path / 'a.png'), None, decode=False) == (16, 24)
    assert not images.is_turned(str(tmp_path / 'a.png'), None, None)
    Image.new('RGB', (16, 16)).save(tmp_path / 'b.png', exif=turned)
    assert images.is_turned(str(tmp_path / 'b.png'), None, None)
