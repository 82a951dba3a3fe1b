"""Masks of one class: what is bright or opaque, whatever the format and the values."""

import numpy as np
import pytest
from exports import HEIGHT, WIDTH, region
from importing import ids, large_photo, masks_of, saved, softened
from PIL import Image

from mmseg_cct.annotations.class_table import read_table
from mmseg_cct.annotations.importer import import_masks

CAR = region('car').astype(np.uint8)


def palette():
    """Black on transparent white."""
    picture = Image.fromarray(CAR)
    picture.putpalette([255, 255, 255, 0, 0, 0])
    picture.info['transparency'] = 0
    return picture


PIXELS = (
    *(CAR, CAR * 0, CAR * 255, CAR.astype(np.uint16) * 65535, np.stack([CAR * 9] * 3, -1)),
    np.dstack([np.zeros((HEIGHT, WIDTH, 3), np.uint8), CAR * 200]),  # in the alpha
    np.dstack([CAR, CAR, CAR, np.full_like(CAR, 255)]),  # opaque throughout
)


@pytest.mark.parametrize('picture', [*map(Image.fromarray, PIXELS), palette()])
def test_masks_of_one_class_have_it_where_they_are_not_0(tmp_path, photos, picture):
    out, source = tmp_path / 'out', saved(tmp_path / 'masks', picture, folder='a').parent
    import_masks(source, out, images=photos, binary='car', rest='background')
    assert np.array_equal(ids(out, 'a/1'), CAR * bool(np.any(np.asarray(picture))))
    assert list(read_table(out).ids) == ['background', 'car']


LARGE = np.zeros((240, 320), bool)
LARGE[40:60, 40:80] = True  # 800 pixels


@pytest.mark.parametrize('top', [255, 60])
@pytest.mark.parametrize('kind', ['jpg', 'png', 'webp', 'resized'])
def test_two_clusters_are_parted_between_them(tmp_path, top, kind):
    picture = Image.fromarray(LARGE.astype(np.uint8) * top)
    if kind == 'png':  # made from a JPEG
        picture.save(tmp_path / '1.jpg', quality=70)
        picture = Image.open(tmp_path / '1.jpg')
    elif kind == 'resized':
        picture, kind = softened(picture), 'png'
    source = saved(tmp_path, picture, kind, quality=70)
    options = dict(images=large_photo(tmp_path), rest='background')
    import_masks(source, tmp_path / 'out', binary='car', **options)
    assert np.array_equal(ids(tmp_path / 'out', '1') == 1, LARGE)


def levels(*values):
    """Stripes of grey values in equal parts, the first in half of the picture."""
    pixels = np.full((240, 320), values[0], np.uint8)
    width = 160 // len(values[1:])
    for index, value in enumerate(values[1:]):
        pixels[:, 160 + index * width :] = value
    return Image.fromarray(pixels)


def noise(*shape):
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, shape, np.uint8))


@pytest.mark.parametrize(
    ('picture', 'end', 'message'),
    [
        (Image.fromarray(LARGE.astype(np.uint8)), 'jpg', 'values up to 1: JPEG; expected a PNG'),
        (levels(0, 1, 2), 'png', 'values 0, 1, 2, not two clusters from 0; expected 0 and'),
        (levels(0, 1, 255), 'png', 'from 0; expected 0 and another value, or --colors'),
        (levels(0, 200, 255), 'png', 'not two clusters'),
        (levels(1, 2), 'png', 'values 1, 2, not two clusters'),
        (noise(240, 320), 'png', 'not two clusters'),
        (noise(240, 320, 3), 'png', 'more than 256 colours; expected a mask, see --mask-suffix'),
    ],
)
def test_what_is_no_mask_of_one_class_is_refused(tmp_path, picture, end, message):
    source = saved(tmp_path, picture, end, quality=95)
    options = dict(images=large_photo(tmp_path), rest='background', binary='car')
    done = import_masks(source, tmp_path / 'out', **options)
    assert message in done.failed[0] and not done.masks


def test_a_mask_that_would_come_out_empty_beside_others_is_named(tmp_path):
    for n, top in enumerate((255, 255, 3)):
        photos = large_photo(tmp_path, n)
        source = masks_of(tmp_path, LARGE.astype(np.uint8) * top, f'masks/{n}.png')
    done = import_masks(source, tmp_path / 'out', images=photos, rest='background', binary='car')
    assert done.new == 2 and '2.png: mask: values up to 3, in other masks 255' in done.failed[0]


def test_masks_of_several_classes_are_merged(tmp_path, photos):
    out, options = tmp_path / 'out', dict(images=photos, rest='background')
    car = masks_of(tmp_path, CAR * 255, 'car/a/1.png')
    road = masks_of(tmp_path, region('road').astype(np.uint8) * 255, 'road/a/1.png')
    import_masks(car, out, binary='car', **options)
    done = import_masks(road, out, binary='road', **options)
    assert (done.merged, done.changed, done.masks) == (1, 0, 1)
    assert '1 mask with one more class' in done.describe()
    assert 'other classes under the class of these masks | 9 (2.8%) |' in done.describe()
    assert np.array_equal(ids(out, 'a/1'), region('road') * 2)
    done = import_masks(car, out, binary='car', **options)
    assert done.merged == 1 and (ids(out, 'a/1') == 1).sum() == 9
    for overwrite in (False, True):  # a correction keeps the other class
        less = masks_of(tmp_path, np.where(np.arange(WIDTH) < 7, CAR, 0) * 255, 'less/a/1.png')
        done = import_masks(less, out, binary='car', overwrite=overwrite, **options)
        found = ids(out, 'a/1')
        assert (done.changed, (found == 1).sum()) == (1, 6 if overwrite else 9)
    assert (found == 2).sum() == region('road').sum() - 9
    assert import_masks(less, out, binary='car', **options).unchanged == 1
