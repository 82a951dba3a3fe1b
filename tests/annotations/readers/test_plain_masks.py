"""Folders of masks: by a table of colours, or what is opaque or not 0 as one class."""

import numpy as np
import pytest
from exports import BOXES, COLOURS, HEIGHT, WIDTH, region, scene
from importing import ids, masks_of, saved
from PIL import Image

from mmseg_cct.annotations.class_table import read_table
from mmseg_cct.annotations.importer import import_masks
from mmseg_cct.errors import UserError

TABLE = {'background': (0, 0, 0), **COLOURS}
CAR = region('car').astype(np.uint8)
PIXELS = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
for label in BOXES:
    PIXELS[region(label)] = COLOURS[label]


def test_colours_become_ids_in_the_order_of_the_table(tmp_path, photos):
    folder = masks_of(tmp_path, PIXELS, 'masks/a/1_mask.png')
    out, options = tmp_path / 'out', dict(images=photos, colours=TABLE)
    assert not import_masks(folder, out, **options, mask_suffix='_mask.png').failed
    assert list(read_table(out).colours.items()) == list(TABLE.items())
    assert np.array_equal(ids(out, 'a/1'), scene(0, car=1, road=2))
    without = import_masks(folder, tmp_path / 'other', **options)
    assert 'a/1_mask; expected --mask-suffix _mask.png' in without.failed[0]
    with pytest.raises(UserError, match='classes a and b'):
        import_masks(folder, out, colours=dict(a=(1, 2, 3), b=(1, 2, 3)))


def test_a_colour_without_a_name_and_what_is_erased_are_an_error_or_the_rest(tmp_path, photos):
    some, right = {'car': COLOURS['car'], 'other': (0, 0, 0)}, scene(1, car=0, road=255)
    opacity = np.where(CAR, 255, 0).astype(np.uint8)
    erased = np.dstack([np.full_like(PIXELS, COLOURS['car']), opacity])
    for pixels, expected in ((PIXELS, right), (erased, np.where(CAR, 0, 255))):
        folder, out = masks_of(tmp_path, pixels), tmp_path / f'out{pixels.shape[2]}'
        done = import_masks(folder, out, images=photos, colours=some)
        assert 'without a name; expected --colors with each, or --rest' in done.failed[0]
        done = import_masks(folder, out, images=photos, colours=some, rest='ignore')
        assert np.array_equal(ids(out, 'a/1'), expected)
        assert 'pixels of colours without a name' in done.describe()


def test_values_are_greys_if_they_are_whole_and_fit_in_8_bits(tmp_path, photos):
    out, table = tmp_path / 'out', {'rest': (0, 0, 0), 'car': (7, 7, 7)}
    folder = masks_of(tmp_path, CAR.astype(np.uint16) * 7)
    import_masks(folder, out, images=photos, colours=table)
    assert np.array_equal(ids(out, 'a/1'), CAR)
    for value in (np.nan, 0.7, -100, 700):
        wrong = Image.fromarray(np.where(CAR, value, 0).astype(np.float32))
        folder = saved(tmp_path / 'wrong', wrong, 'tif', 'a').parent
        done = import_masks(folder, out, images=photos, colours=table)
        assert f'value {value:g}: expected whole numbers' in done.failed[0] and not done.masks


def test_colours_are_asked_for_by_name(tmp_path, photos):
    folder = masks_of(tmp_path, PIXELS)
    with pytest.raises(UserError) as raised:
        import_masks(folder, tmp_path / 'out', images=photos)
    assert str(raised.value) == (
        f'{folder}: masks of the colours 0 (75.0%), 0,0,255 (22.2%), 255,0,0 (2.8%); expected '
        'their names, --colors NAME=0 NAME=0,0,255 NAME=255,0,0, or --binary NAME for all but 0'
    )
    with pytest.raises(UserError, match='no import, these are ids already: '):
        import_masks(masks_of(tmp_path, CAR, 'ids/1.png'), tmp_path / 'out', images=photos)
    noise = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    with pytest.raises(UserError, match='no known format; expected COCO, CVAT'):
        import_masks(masks_of(tmp_path, noise, 'photo/1.png'), tmp_path / 'out', images=photos)


def palette():
    """Black on transparent white."""
    picture = Image.fromarray(CAR)
    picture.putpalette([255, 255, 255, 0, 0, 0])
    picture.info['transparency'] = 0
    return picture


OPACITY = np.dstack([np.zeros((HEIGHT, WIDTH, 3), np.uint8), CAR * 200])
OPAQUE = np.dstack([CAR, CAR, CAR, np.full_like(CAR, 255)])
ONE_CLASS = CAR, CAR * 0, CAR * 255, CAR.astype(np.uint16) * 65535, np.stack([CAR * 9] * 3, -1)


@pytest.mark.parametrize(
    'picture', [*map(Image.fromarray, (*ONE_CLASS, OPACITY, OPAQUE)), palette()]
)
def test_masks_of_one_class_have_it_where_they_are_not_0(tmp_path, photos, picture):
    out, source = tmp_path / 'out', saved(tmp_path / 'masks', picture, folder='a').parent
    import_masks(source, out, images=photos, binary='car', rest='background')
    assert np.array_equal(ids(out, 'a/1'), CAR * bool(np.any(np.asarray(picture))))
    assert list(read_table(out).ids) == ['background', 'car']


THREE = np.where(CAR, 2, region('road')).astype(np.uint8)


@pytest.mark.parametrize(
    ('pixels', 'end'),
    [
        (THREE, 'png'),
        (CAR + 1, 'png'),
        (PIXELS, 'png'),
        (np.where(CAR, -1, 0).astype(np.int32), 'tif'),
        (np.where(CAR, np.nan, 0).astype(np.float32), 'tif'),
        (CAR * 255, 'jpg'),
    ],
)
def test_what_is_no_mask_of_one_class_is_refused(tmp_path, photos, pixels, end):
    source = saved(tmp_path / 'masks', Image.fromarray(pixels), end, 'a').parent
    options = dict(images=photos, rest='background', binary='car')
    done = import_masks(source, tmp_path / 'out', **options)
    assert f'1.{end}: mask:' in done.failed[0] and not done.masks


def test_masks_of_several_classes_are_merged(tmp_path, photos):
    out, options = tmp_path / 'out', dict(images=photos, rest='background')
    car = masks_of(tmp_path, CAR * 255, 'car/a/1.png')
    road = masks_of(tmp_path, region('road').astype(np.uint8) * 255, 'road/a/1.png')
    import_masks(car, out, binary='car', **options)
    done = import_masks(road, out, binary='road', **options)
    assert (done.merged, done.changed, done.masks) == (1, 0, 1)
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
