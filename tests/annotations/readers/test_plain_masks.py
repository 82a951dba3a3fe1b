"""Folders of masks: by a table of colours, or what is bright or opaque as one class."""

import re

import numpy as np
import pytest
from exports import BOXES, COLOURS, HEIGHT, WIDTH, region, scene
from importing import ids, large_photo, masks_of, saved, softened
from PIL import Image

from mmseg_cct.annotations.class_table import read_table
from mmseg_cct.annotations.importer import import_masks
from mmseg_cct.errors import UserError

TABLE = {'background': (0, 0, 0), **COLOURS}
CAR = region('car').astype(np.uint8)


def coloured():
    pixels = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    for label in BOXES:
        pixels[region(label)] = COLOURS[label]
    return pixels


def test_colours_become_ids_in_the_order_of_the_table(tmp_path, photos):
    folder = masks_of(tmp_path, coloured(), 'masks/a/1_mask.png')
    out, options = tmp_path / 'out', dict(images=photos, colours=TABLE)
    assert not import_masks(folder, out, **options, mask_suffix='_mask.png').failed
    assert list(read_table(out).colours.items()) == list(TABLE.items())
    assert np.array_equal(ids(out, 'a/1'), scene(0, car=1, road=2))
    without = import_masks(folder, tmp_path / 'other', **options)
    assert 'a/1_mask; expected --mask-suffix _mask.png' in without.failed[0]


def test_a_colour_without_a_name_is_an_error_or_the_rest(tmp_path, photos):
    folder, some = masks_of(tmp_path, coloured()), {'car': COLOURS['car'], 'other': (0, 0, 0)}
    done = import_masks(folder, tmp_path / 'out', images=photos, colours=some)
    assert 'a/1.png: colours 0,0,255: without a name; expected --colors with' in done.failed[0]
    import_masks(folder, tmp_path / 'out', images=photos, colours=some, rest='ignore')
    assert np.array_equal(ids(tmp_path / 'out', 'a/1'), scene(1, car=0, road=255))


def test_ids_of_16_bits_are_greys_if_they_fit_in_8(tmp_path, photos):
    out, table = tmp_path / 'out', {'rest': (0, 0, 0), 'car': (7, 7, 7)}
    folder = masks_of(tmp_path, CAR.astype(np.uint16) * 7)
    import_masks(folder, out, images=photos, colours=table)
    assert np.array_equal(ids(out, 'a/1'), CAR)
    masks_of(tmp_path, CAR.astype(np.uint16) * 700)
    done = import_masks(folder, out, images=photos, colours=table)
    assert 'a/1.png: values up to 700: expected a mask of 8 bits' in done.failed[0]


def test_colours_are_asked_for_by_name(tmp_path, photos):
    folder = masks_of(tmp_path, coloured())
    with pytest.raises(UserError) as raised:
        import_masks(folder, tmp_path / 'out', images=photos)
    assert str(raised.value) == (
        f'{folder}: masks of the colours 0 (75.0%), 0,0,255 (22.2%), 255,0,0 (2.8%); expected '
        'their names, --colors NAME=0 NAME=0,0,255 NAME=255,0,0, or --binary NAME for all but 0'
    )
    noise = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    with pytest.raises(UserError, match='no known format; expected COCO, CVAT'):
        import_masks(masks_of(tmp_path, noise, 'photo/1.png'), tmp_path / 'out', images=photos)


SCENE = np.zeros((240, 320, 3), np.uint8)
SCENE[40:100, 60:160], SCENE[120:200, 30:250] = COLOURS['car'], COLOURS['road']
SCENE[150:160, 100:200] = COLOURS['car']
RIGHT = np.select([SCENE[..., 0] > 0, SCENE[..., 2] > 0], [1, 2])


@pytest.mark.parametrize('rest', ['background', 'ignore', None])
@pytest.mark.parametrize('kind', ['jpg', 'webp', 'resized'])
def test_pixels_between_two_colours_get_the_nearer_one(tmp_path, rest, kind):
    picture, out = Image.fromarray(SCENE), tmp_path / 'out'
    if kind == 'resized':
        source = saved(tmp_path, softened(picture))
    else:
        source = saved(tmp_path, picture, kind, quality=95, subsampling=0)
    done = import_masks(source, out, images=large_photo(tmp_path), colours=TABLE, rest=rest)
    if kind == 'webp' and done.failed:  # it halves the resolution of colours
        assert 'of the pixels blend colours; expected a mask without loss' in done.failed[0]
        return
    assert (ids(out, '1') != RIGHT).mean() < 0.005
    assert kind == 'resized' or '%) | 1: 1 | the nearest colour |' in done.describe()


def test_a_mask_that_is_mostly_blends_is_refused_and_a_photo_too(tmp_path):
    options = dict(images=large_photo(tmp_path), colours=TABLE, rest='background')
    blends = Image.fromarray(SCENE).resize((20, 15)).resize((320, 240), Image.BICUBIC)
    photo = Image.fromarray(np.random.default_rng(0).integers(0, 256, (240, 320, 3), np.uint8))
    for picture in (blends, photo):
        done = import_masks(saved(tmp_path, picture), tmp_path / 'out', **options)
        assert 'of the pixels blend colours; expected a mask without loss' in done.failed[0]


def test_another_colour_in_areas_is_the_rest_and_told_with_its_share(tmp_path):
    photos, pixels = large_photo(tmp_path), SCENE.copy()
    pixels[210:230, 10:58] = (0, 128, 0)  # like half a green, of which there is none
    pixels[0, :2] = (224, 224, 192)  # VOC's ignored pixels
    pixels[5, :99] = (128, 128, 0)  # a line of another class, nearer to black than to any
    folder = masks_of(tmp_path, pixels, 'masks/1.png')
    done = import_masks(folder, tmp_path / 'out', images=photos, colours=TABLE, rest='ignore')
    right = RIGHT.copy()
    right[210:230, 10:58] = right[0, :2] = right[5, :99] = 255
    assert np.array_equal(ids(tmp_path / 'out', '1'), right)
    assert '| pixels of colours without a name | 960 (1.2%) |' in done.describe()
    assert '| pixels of colours between all others | 99 (0.1%) |' in done.describe()


@pytest.mark.parametrize(
    ('pixels', 'message'),
    [
        (np.where(CAR, np.nan, 1), r'values: nan \(9 pixels\); expected whole numbers from 0'),
        (np.where(CAR, 0.7, 1), r'values: 0\.7 \(9 pixels\); expected whole numbers from 0'),
        (np.where(CAR, -100, 1), r'values: -100 .*--rename -100= to ignore it'),
    ],
)
@pytest.mark.parametrize('option', [dict(colours={'x': (1, 1, 1)}), dict(binary='x')])
def test_values_that_are_no_ids_are_refused_by_value(tmp_path, photos, pixels, message, option):
    saved(tmp_path / 'masks', Image.fromarray(pixels.astype(np.float32)), 'tif', 'a')
    options = dict(images=photos, rest='background')
    done = import_masks(tmp_path / 'masks', tmp_path / 'out', **options, **option)
    assert re.search(message, done.failed[0]) and not done.masks


def test_a_value_is_ignored_or_named_by_rename(tmp_path, photos):
    pixels = np.where(region('road'), 1, 0) - 101 * CAR.astype(np.int32)
    saved(tmp_path / 'masks', Image.fromarray(pixels.astype(np.int32)), 'tif', 'a')
    options = dict(images=photos, rest='background')
    for option in (dict(colours={'background': (0, 0, 0), 'road': (1, 1, 1)}), dict(binary='road')):
        out = tmp_path / f'out_{next(iter(option))}'
        for _ in range(2):  # the table knows it the second time
            given = {} if out.exists() else dict(rename={'-100': None})
            done = import_masks(tmp_path / 'masks', out, **options, **option, **given)
            assert not done.failed
        assert np.array_equal(ids(out, 'a/1'), scene(0, car=255, road=1))
        assert list(read_table(out).colours) == ['background', 'road']
    out = tmp_path / 'named'
    import_masks(tmp_path / 'masks', out, **options, binary='road', rename={'-100': 'car'})
    assert np.array_equal(ids(out, 'a/1'), scene(0, car=2, road=1))


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
