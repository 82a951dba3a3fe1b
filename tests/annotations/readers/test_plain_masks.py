import numpy as np
import pytest
from exports import BOXES, COLORS, HEIGHT, WIDTH, region, scene
from importing import ids, import_masks, masks_of
from PIL import Image

from mmseg_cct.annotations.class_table import read_table
from mmseg_cct.errors import UserError

TABLE = {'background': (0, 0, 0), **COLORS}
CAR = region('car').astype(np.uint8)
PIXELS = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
for label in BOXES:
    PIXELS[region(label)] = COLORS[label]


def test_colours_become_ids_in_the_order_of_the_table(tmp_path, photos):
    folder = masks_of(tmp_path, PIXELS, 'masks/a/1_mask.png')
    out, options = tmp_path / 'out', dict(images=photos, colors=TABLE)
    assert not import_masks(folder, out, **options, mask_suffix='_mask.png').failed
    assert list(read_table(out).colors.items()) == list(TABLE.items())
    assert np.array_equal(ids(out, 'a/1'), scene(0, car=1, road=2))
    without = import_masks(folder, tmp_path / 'other', **options)
    assert without.missing == ['a/1_mask'] and not without.masks
    with pytest.raises(UserError, match='classes a and b'):
        import_masks(folder, out, colors=dict(a=(1, 2, 3), b=(1, 2, 3)))
    masks_of(tmp_path, PIXELS, 'masks/a/1.jpg')
    blended = import_masks(
        folder, tmp_path / 'jpg', **options, undrawn='ignore', mask_suffix='.jpg'
    )
    assert 'mask: JPEG' in blended.failed[0]


def test_a_colour_without_a_name_and_what_is_erased_are_an_error_or_the_rest(tmp_path, photos):
    some_colors, right = {'car': COLORS['car'], 'other': (0, 0, 0)}, scene(1, car=0, road=255)
    opacity = np.where(CAR, 255, 0).astype(np.uint8)
    erased = np.dstack([np.full_like(PIXELS, COLORS['car']), opacity])
    for pixels, expected in ((PIXELS, right), (erased, np.where(CAR, 0, 255))):
        folder, out = masks_of(tmp_path, pixels), tmp_path / f'out{pixels.shape[2]}'
        done = import_masks(folder, out, images=photos, colors=some_colors)
        assert 'have no name; name each in --colors, or pass --rest' in done.failed[0]
        done = import_masks(folder, out, images=photos, colors=some_colors, undrawn='ignore')
        assert np.array_equal(ids(out, 'a/1'), expected)
        assert 'pixels of colours without a name' in done.describe()


def test_values_are_greys_if_they_are_whole_and_fit_in_8_bits(tmp_path, photos):
    out, table = tmp_path / 'out', {'rest': (0, 0, 0), 'car': (7, 7, 7)}
    folder = masks_of(tmp_path, CAR.astype(np.uint16) * 7)
    import_masks(folder, out, images=photos, colors=table)
    assert np.array_equal(ids(out, 'a/1'), CAR)
    for value in (np.nan, 0.7, 700):
        wrong = np.where(CAR, value, 0).astype(np.float32)
        folder = masks_of(tmp_path, wrong, 'wrong/a/1.tif')
        done = import_masks(folder, out, images=photos, colors=table)
        assert f'value {value:g}: expected whole numbers' in done.failed[0] and not done.masks


def test_colours_are_asked_for_by_name(tmp_path, photos):
    folder = masks_of(tmp_path, PIXELS)
    with pytest.raises(UserError, match='--colors NAME=0 NAME=0,0,255 '):
        import_masks(folder, tmp_path / 'out', images=photos)
    noise = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    with pytest.raises(UserError, match='no known format; expected COCO, CVAT'):
        import_masks(masks_of(tmp_path, noise, 'photo/1.png'), tmp_path / 'out', images=photos)


def test_ids_of_a_data_folder_need_no_colours(tmp_path, photos):
    out, options = tmp_path / 'out', dict(images=photos)
    import_masks(masks_of(tmp_path, PIXELS), out, **options, colors=TABLE)
    right = scene(0, car=1, road=2)
    right[0, 0] = 255
    grey, palette = Image.fromarray(right), Image.fromarray(right)
    palette.putpalette(np.uint8([*TABLE.values(), *[(255,) * 3] * 253]).tobytes())
    for picture in (grey, palette):
        folder = tmp_path / picture.mode
        (folder / 'b').mkdir(parents=True)
        picture.save(folder / 'b/1.png')
        done = import_masks(folder, out, **options, overwrite=True)
        assert not done.failed and np.array_equal(ids(out, 'b/1'), right)
    with pytest.raises(UserError, match='--colors NAME=0 NAME=255'):
        import_masks(masks_of(tmp_path, 255 * CAR, 'other/a/1.png'), out, **options)


def test_masks_without_any_of_the_colours_are_an_error(tmp_path, photos):
    options = dict(images=photos, colors={'car': (1, 1, 1)}, undrawn='ignore')
    with pytest.raises(UserError, match='--colors NAME=0 NAME=255'):
        import_masks(masks_of(tmp_path, 255 * CAR), tmp_path / 'out', **options)


@pytest.mark.parametrize(
    'names', [('a/1_car.png', 'a/1_road.png'), ('car/a/1.png', 'road/a/1.png')]
)
def test_masks_of_one_class_each_are_merged(tmp_path, photos, names):
    for label, name in zip(('car', 'road'), names):
        masks_of(tmp_path, 255 * region(label).astype(np.uint8), f'masks/{name}')
    patterns = {label: name.replace('a/1', '*') for label, name in zip(('car', 'road'), names)}
    options = dict(images=photos, undrawn='background')
    done = import_masks(tmp_path / 'masks', tmp_path / 'out', class_masks=patterns, **options)
    assert (done.new, done.failed, done.warnings) == (1, [], [])
    assert np.array_equal(ids(tmp_path / 'out', 'a/1'), scene(0, car=1, road=2))
    with pytest.raises(UserError, match='--mask-of rust='):
        import_masks(tmp_path / 'masks', tmp_path / 'out', class_masks={'rust': '*_rust.png'})
