"""Folders of masks: the table of colours, one class against the rest, and what is asked for."""

import numpy as np
import pytest
from exports import BOXES, COLOURS, HEIGHT, WIDTH, make_photos, png, region, save, scene
from PIL import Image

from mmseg_cct.annotations.class_table import read_table
from mmseg_cct.annotations.importer import import_masks
from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_files import read_mask

TABLE = {'background': (0, 0, 0), **COLOURS}
CAR = region('car').astype(np.uint8)


@pytest.fixture
def photos(tmp_path):
    return make_photos(tmp_path)


def masks_of(tmp_path, array, name='masks/a/1.png'):
    save(tmp_path / name, png(array))
    return tmp_path / name.split('/')[0]


def coloured():
    pixels = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    for label in BOXES:
        pixels[region(label)] = COLOURS[label]
    return pixels


def test_colours_become_ids_in_the_order_of_the_table(tmp_path, photos):
    folder = masks_of(tmp_path, coloured(), 'masks/a/1_mask.png')
    done = import_masks(
        folder, tmp_path / 'out', images=photos, colours=TABLE, mask_suffix='_mask.png'
    )
    assert not done.failed
    assert list(read_table(tmp_path / 'out').colours.items()) == list(TABLE.items())
    assert np.array_equal(read_mask(tmp_path / 'out/masks/a/1.png'), scene(0, car=1, road=2))
    without = import_masks(folder, tmp_path / 'other', images=photos, colours=TABLE)
    assert 'a/1_mask; expected --mask-suffix _mask.png' in without.failed[0]


def test_a_colour_without_a_name_is_an_error_or_the_rest(tmp_path, photos):
    folder, some = masks_of(tmp_path, coloured()), {'car': COLOURS['car'], 'other': (0, 0, 0)}
    done = import_masks(folder, tmp_path / 'out', images=photos, colours=some)
    assert 'a/1.png: colours 0,0,255: without a name; expected --colors with' in done.failed[0]
    import_masks(folder, tmp_path / 'out', images=photos, colours=some, rest='ignore')
    assert np.array_equal(read_mask(tmp_path / 'out/masks/a/1.png'), scene(1, car=0, road=255))


def test_ids_of_16_bits_are_greys_if_they_fit_in_8(tmp_path, photos):
    out, table = tmp_path / 'out', {'rest': (0, 0, 0), 'car': (7, 7, 7)}
    folder = masks_of(tmp_path, CAR.astype(np.uint16) * 7)
    import_masks(folder, out, images=photos, colours=table)
    assert np.array_equal(read_mask(out / 'masks/a/1.png'), CAR)
    masks_of(tmp_path, CAR.astype(np.uint16) * 700)
    done = import_masks(folder, out, images=photos, colours=table)
    assert 'a/1.png: values up to 700: expected a mask of 8 bits' in done.failed[0]


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


def test_colours_are_asked_for_by_name(tmp_path, photos):
    folder = masks_of(tmp_path, coloured())
    with pytest.raises(UserError) as raised:
        import_masks(folder, tmp_path / 'out', images=photos)
    assert str(raised.value) == (
        f'{folder}: masks of the colours 0 (75.0%), 0,0,255 (22.2%), 255,0,0 (2.8%); expected '
        'their names, --colors NAME=0 NAME=0,0,255 NAME=255,0,0, or --binary NAME for all but 0'
    )
    noise = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    with pytest.raises(UserError, match='no known format; expected COCO p'):
        import_masks(masks_of(tmp_path, noise, 'photo/1.png'), tmp_path / 'out', images=photos)
