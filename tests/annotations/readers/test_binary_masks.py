"""Masks of one class: what is bright or opaque, whatever the format and the values."""

import numpy as np
import pytest
from exports import HEIGHT, WIDTH, make_photos, png, region, save
from PIL import Image

from mmseg_cct.annotations.class_table import read_table
from mmseg_cct.annotations.importer import import_masks
from mmseg_cct.utils.image_files import read_mask

CAR = region('car').astype(np.uint8)


@pytest.fixture
def photos(tmp_path):
    return make_photos(tmp_path)


def masks_of(tmp_path, array, name='masks/a/1.png'):
    save(tmp_path / name, png(array))
    return tmp_path / name.split('/')[0]


@pytest.mark.parametrize(
    'array',
    [
        CAR,
        CAR * 255,
        CAR.astype(np.uint16) * 65535,
        np.stack([CAR * 9] * 3, -1),
        np.dstack([np.zeros((HEIGHT, WIDTH, 3), np.uint8), CAR * 200]),  # in the alpha channel
        np.dstack([CAR, CAR, CAR, np.full_like(CAR, 255)]),  # opaque throughout
    ],
)
def test_masks_of_one_class_have_it_where_they_are_not_0(tmp_path, photos, array):
    out = tmp_path / 'out'
    import_masks(masks_of(tmp_path, array), out, images=photos, binary='car', rest='background')
    assert np.array_equal(read_mask(out / 'masks/a/1.png'), CAR)
    assert list(read_table(out).ids) == ['background', 'car']


def test_a_palette_of_one_class_has_it_where_it_is_opaque(tmp_path, photos):
    image, out = Image.fromarray(CAR), tmp_path / 'out'
    image.putpalette([255, 255, 255, 0, 0, 0])  # black on transparent white
    (tmp_path / 'masks/a').mkdir(parents=True)
    image.save(tmp_path / 'masks/a/1.png', transparency=0)
    import_masks(tmp_path / 'masks', out, images=photos, binary='car', rest='background')
    assert np.array_equal(read_mask(out / 'masks/a/1.png'), CAR)


def test_a_black_mask_says_that_nothing_is_there(tmp_path, photos):
    out = tmp_path / 'out'
    import_masks(masks_of(tmp_path, CAR * 0), out, images=photos, binary='car', rest='background')
    assert not read_mask(out / 'masks/a/1.png').any()


def test_the_noise_of_a_jpeg_is_no_class(tmp_path, photos):
    (tmp_path / 'masks/a').mkdir(parents=True)
    Image.fromarray(CAR * 255).save(tmp_path / 'masks/a/1.jpg', quality=60)
    out = tmp_path / 'out'
    import_masks(tmp_path / 'masks', out, images=photos, binary='car', rest='background')
    mask = read_mask(out / 'masks/a/1.png')
    assert (mask != CAR).sum() <= 2


LARGE = np.zeros((240, 320), bool)
LARGE[40:60, 40:80] = True  # 800 pixels


@pytest.mark.parametrize('top', [255, 60])
@pytest.mark.parametrize('kind', ['jpg', 'png', 'webp', 'resized'])
def test_two_clusters_are_parted_between_them(tmp_path, top, kind):
    save(tmp_path / 'photos/1.png', png(np.zeros((240, 320, 3), np.uint8)))
    (tmp_path / 'masks').mkdir()
    picture = Image.fromarray(LARGE.astype(np.uint8) * top)
    if kind == 'resized':
        picture = picture.resize((640, 480), Image.NEAREST).resize((320, 240), Image.BICUBIC)
        picture.save(tmp_path / 'masks/1.png')
    else:
        picture.save(tmp_path / f'masks/1.{kind}', quality=70)
    if kind == 'png':  # made from a JPEG
        picture.save(tmp_path / '1.jpg', quality=70)
        Image.open(tmp_path / '1.jpg').save(tmp_path / 'masks/1.png')
    options = dict(images=tmp_path / 'photos', rest='background')
    import_masks(tmp_path / 'masks', tmp_path / 'out', binary='car', **options)
    assert np.array_equal(read_mask(tmp_path / 'out/masks/1.png') == 1, LARGE)


def levels(*values):
    """Stripes of grey values in equal parts, the first in half of the picture."""
    pixels = np.full((240, 320), values[0], np.uint8)
    width = 160 // len(values[1:])
    for index, value in enumerate(values[1:]):
        pixels[:, 160 + index * width :] = value
    return Image.fromarray(pixels)


@pytest.mark.parametrize(
    ('picture', 'end', 'message'),
    [
        (Image.fromarray(LARGE.astype(np.uint8)), 'jpg', 'values up to 1: JPEG; expected a PNG'),
        (levels(0, 1, 2), 'png', 'values 0, 1, 2, not two clusters from 0; expected 0 and'),
        (
            levels(0, 1, 255),
            'png',
            'not two clusters from 0; expected 0 and another value, or --',
        ),
        (levels(0, 200, 255), 'png', 'not two clusters'),
        (levels(1, 2), 'png', 'values 1, 2, not two clusters'),
        (
            Image.fromarray(np.random.default_rng(0).integers(0, 256, (240, 320), np.uint8)),
            'png',
            'not two clusters',
        ),
        (
            Image.fromarray(np.random.default_rng(0).integers(0, 256, (240, 320, 3), np.uint8)),
            'png',
            'more than 256 colours; expected a mask, see --mask-suffix',
        ),
    ],
)
def test_what_is_no_mask_of_one_class_is_refused(tmp_path, picture, end, message):
    save(tmp_path / 'photos/1.png', png(np.zeros((240, 320, 3), np.uint8)))
    (tmp_path / 'masks').mkdir()
    picture.save(tmp_path / f'masks/1.{end}', quality=95)
    options = dict(images=tmp_path / 'photos', rest='background', binary='car')
    done = import_masks(tmp_path / 'masks', tmp_path / 'out', **options)
    assert message in done.failed[0] and not done.masks


def test_a_mask_that_would_come_out_empty_beside_others_is_named(tmp_path):
    for n, top in enumerate((255, 255, 3)):
        save(tmp_path / f'photos/{n}.png', png(np.zeros((240, 320, 3), np.uint8)))
        save(tmp_path / f'masks/{n}.png', png(LARGE.astype(np.uint8) * top))
    options = dict(images=tmp_path / 'photos', rest='background', binary='car')
    done = import_masks(tmp_path / 'masks', tmp_path / 'out', **options)
    assert done.new == 2 and '2.png: mask: values up to 3, in other masks 255' in done.failed[0]


def test_masks_of_several_classes_are_merged(tmp_path, photos):
    out, options = tmp_path / 'out', dict(images=photos, rest='background')
    car = masks_of(tmp_path, CAR * 255, 'car/a/1.png')
    road = masks_of(tmp_path, region('road').astype(np.uint8) * 255, 'road/a/1.png')
    import_masks(car, out, binary='car', **options)
    done = import_masks(road, out, binary='road', **options)
    assert (done.merged, done.changed, done.masks) == (1, 0, 1)
    assert '1 masks got one more class' in done.describe()
    assert 'other classes under the class of these masks | 9 (2.8%) |' in done.describe()
    assert np.array_equal(read_mask(out / 'masks/a/1.png'), region('road') * 2)
    done = import_masks(car, out, binary='car', **options)
    assert done.merged == 1 and (read_mask(out / 'masks/a/1.png') == 1).sum() == 9
    for overwrite in (False, True):  # a correction keeps the other class
        less = masks_of(tmp_path, np.where(np.arange(WIDTH) < 7, CAR, 0) * 255, 'less/a/1.png')
        done = import_masks(less, out, binary='car', overwrite=overwrite, **options)
        found = read_mask(out / 'masks/a/1.png')
        assert (done.changed, (found == 1).sum()) == (1, 6 if overwrite else 9)
    assert (found == 2).sum() == region('road').sum() - 9
    assert import_masks(less, out, binary='car', **options).unchanged == 1
