import io

import numpy as np
import pytest
from exports import png
from PIL import Image

from mmseg_cct.annotations.pictures import bitmap, open_picture, packed_colors, size_of
from mmseg_cct.datasets.files.images import ORIENTATION, decode_image
from mmseg_cct.errors import UserError

MASK = np.random.default_rng(0).random((5, 7)) > 0.5
GREY = MASK.astype(np.uint8) * 9


def palette(**options):
    picture = Image.fromarray(MASK.astype(np.uint8))
    picture.putpalette([0, 0, 0, 255, 255, 255])
    buffer = io.BytesIO()
    picture.save(buffer, 'PNG', **options)
    return buffer.getvalue()


TRANSPARENT = (png(np.stack([GREY * 0, GREY], -1)), palette(transparency=0))
PICTURES = (png(MASK), png(GREY), png(np.stack([GREY, GREY * 0, GREY], -1)), palette())
OPAQUE_WHITE = png(np.dstack([np.full((5, 7, 3), 255, np.uint8), GREY]))


@pytest.mark.parametrize('data', [*PICTURES, *TRANSPARENT, OPAQUE_WHITE])
def test_a_bitmap_is_what_is_opaque_or_bright(data):
    picture = open_picture(data)
    assert np.array_equal(bitmap(picture), MASK)
    if data not in PICTURES:  # what is transparent has no colour
        assert np.array_equal(packed_colors(picture) >= 0, MASK)


@pytest.mark.parametrize('suffix', ['.jpg', '.png', '.tif'])
def test_the_size_is_the_stored_one(tmp_path, suffix):
    image, path = Image.fromarray(GREY), tmp_path / f'a{suffix}'
    exif = image.getexif()
    exif[ORIENTATION] = 6
    image.save(path, exif=exif)
    assert size_of(path) == size_of(path.read_bytes()) == ((7, 5), 6)
    assert decode_image(path.read_bytes()).shape == (7, 5, 3)


def test_what_is_no_image_is_refused(tmp_path):
    (tmp_path / 'a.jpg').write_text('text')
    for read, picture in (
        (size_of, tmp_path / 'a.jpg'),
        (size_of, b'text'),
        (open_picture, b'text'),
    ):
        with pytest.raises(UserError):
            read(picture)
