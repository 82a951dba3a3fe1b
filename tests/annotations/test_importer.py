"""From an export to masks, images and the table of classes."""

import json

import exports
import numpy as np
import pytest
from exports import HEIGHT, WIDTH, png, save, scene
from importing import SQUARE, ids, labelme
from PIL import Image

from mmseg_cct.annotations.class_table import read_table
from mmseg_cct.annotations.importer import import_masks
from mmseg_cct.datasets.files.image_files import find_images
from mmseg_cct.datasets.files.images import read_image
from mmseg_cct.errors import UserError
from mmseg_cct.utils.processes import locked_folder


@pytest.mark.parametrize('export', exports.EXPORTS)
def test_every_format_gives_the_same_masks(tmp_path, photos, export):
    source, out = export(tmp_path), tmp_path / 'out'
    done = import_masks(source, out, images=photos, rest='background')
    assert not done.failed
    assert (done.new, done.images, done.missing) == (2, 3, [])
    table = read_table(out)
    of_class = {name: index for name, index in table.ids.items() if name != 'background'}
    assert table.ids['background'] == 0 and set(of_class) == {'road', 'car'}
    for name in exports.NAMES:
        assert np.array_equal(ids(out, name), scene(0, **of_class))
    # the third image has no mask, so it is unlabelled
    assert set(find_images(out / 'images')) == {'a/1', 'b/1', 'unlabelled'}
    again = import_masks(source, out)
    assert (again.new, again.unchanged, again.images) == (0, 2, 0)


def test_what_is_not_drawn_may_be_ignored_and_masks_have_the_colours_of_the_table(tmp_path, photos):
    out = tmp_path / 'out'
    import_masks(exports.cvat(tmp_path), out, images=photos, rest='ignore')
    assert read_table(out).colours == exports.COLOURS
    assert np.array_equal(ids(out, 'a/1'), scene(255, car=0, road=1))
    palette = Image.open(out / 'masks/a/1.png').getpalette()
    assert palette[:6] == np.ravel(list(exports.COLOURS.values())).tolist()
    assert palette[-3:] == [255, 255, 255]  # ignored


def test_classes_are_renamed_merged_and_ignored_by_later_imports_too(tmp_path, photos):
    source, out, without = exports.cvat(tmp_path), tmp_path / 'out', tmp_path / 'without'
    options = dict(images=photos, rest='background')
    with pytest.raises(UserError, match=r"--rename: 'cat'; expected a class of the export: .*road"):
        import_masks(source, out, **options, rename={'cat': 'dog'})
    import_masks(source, out, **options, rename={'car': 'any', 'road': 'any'})
    assert set(read_table(out).ids) == {'background', 'any'}
    for name in exports.NAMES:
        assert np.array_equal(ids(out, name), np.minimum(scene(0, car=1, road=1), 1))
    assert import_masks(source, out).unchanged == 2  # by the table
    assert import_masks(source, out, rename={'car': 'any'}).unchanged == 2
    import_masks(source, without, **options, rename={'car': None})
    assert set(read_table(without).ids) == {'background', 'road'}
    assert np.array_equal(ids(without, 'a/1'), scene(0, car=255, road=1))
    for folder, old, new in ((out, 'car', 'road'), (without, 'road', 'street')):
        with pytest.raises(UserError, match=f"--rename: '{old}' has masks of earlier imports; exp"):
            import_masks(source, folder, rename={old: new})


def test_what_is_listed_without_a_shape_may_be_background(tmp_path, photos):
    file, out = labelme(tmp_path / '1.json', imagePath='a/1.jpg', shapes=[]), tmp_path / 'out'
    done = import_masks(file, out, images=photos, rest='background')
    assert done.bare == 1
    with pytest.raises(UserError, match=r'1.json: no image is annotated'):
        done.require_complete(overwrite=False)
    import_masks(file, out, images=photos, rest='background', empty=True)
    assert not ids(out, 'a/1').any()
    told = import_masks(file, out).describe()
    assert 'images without a shape, whose masks are of earlier imports and stay: 1' in told
    point = dict(label='car', shape_type='point', points=[[1, 2]])
    pointed = labelme(tmp_path / '2.json', imagePath='a/1.jpg', shapes=[point])
    other = tmp_path / 'pointed'
    assert import_masks(pointed, other, images=photos, rest='background', empty=True).bare == 1
    with pytest.raises(UserError, match='--empty-is-background: with --rest ignore'):
        import_masks(file, tmp_path / 'other', images=photos, rest='ignore', empty=True)


def test_a_second_import_adds_classes_and_counts_what_changed(tmp_path, photos):
    out, first = tmp_path / 'out', labelme(tmp_path / 'x/1.json', imagePath='a/1.jpg')
    import_masks(first, out, images=photos, rest='background')
    labelme(first, 'bike', imagePath='a/1.jpg')
    kept = import_masks(first, out)
    with pytest.raises(UserError, match='1 masks of earlier imports differ and were kept; expec'):
        kept.require_complete(overwrite=False)
    assert (ids(out, 'a/1') == 1).sum() == 64
    done = import_masks(first, out, overwrite=True)
    assert 'pixels unlike those of earlier masks, replaced: 64 in 1 image' in done.describe()
    assert list(read_table(out).ids) == ['background', 'car', 'bike']
    assert (ids(out, 'a/1') == 2).sum() == 64


def test_an_import_may_leave_the_rest_open_where_the_first_did_not(tmp_path, photos):
    out, file = tmp_path / 'out', tmp_path / 'x.json'
    import_masks(labelme(file, imagePath='a/1.jpg'), out, images=photos, rest='background')
    import_masks(labelme(file, imagePath='b/1.jpg'), out, rest='ignore')
    assert [set(np.unique(ids(out, name))) for name in exports.NAMES] == [{0, 1}, {1, 255}]
    assert read_table(out).rest == 'background'
    import_masks(labelme(file, imagePath='unlabelled.jpg'), out)
    assert set(np.unique(ids(out, 'unlabelled'))) == {0, 1}


def test_the_validation_images_share_the_table(tmp_path, photos):
    first, second = (labelme(tmp_path / f'{x}/1.json', x, imagePath='a/1.jpg') for x in 'xy')
    import_masks(first, tmp_path / 'out', images=photos, rest='background')
    import_masks(second, tmp_path / 'out/val', images=photos)
    assert list(read_table(tmp_path / 'out').ids) == ['background', 'x', 'y']
    assert (ids(tmp_path / 'out/val', 'a/1') == 2).sum() == 64


# annotated as the image is shown, or as it is stored where its size tells, also at another scale
@pytest.mark.parametrize('scale', [1, 2])
@pytest.mark.parametrize(
    ('orientation', 'turned'),
    [*((n, True) for n in range(1, 9)), *((n, False) for n in range(5, 9))],
)
def test_a_mask_lies_as_its_image_is_shown(tmp_path, orientation, turned, scale):
    stored = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    stored[:8, :8] = 255
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = Image.fromarray(stored)
    (tmp_path / 'photos').mkdir()
    image.save(tmp_path / 'photos/1.png', exif=exif)
    shown = read_image(tmp_path / 'photos/1.png')[..., 0] > 0
    x, y, size = 0, 0, (WIDTH, HEIGHT)
    if turned:
        y, x = (int(values.min()) for values in np.nonzero(shown))
        size = shown.shape[::-1]
    points, size = (np.add(SQUARE, [x, y]) / scale).tolist(), np.floor_divide(size, scale).tolist()
    file = labelme(tmp_path / '1.json', size=size, points=points, imagePath='1.png')
    given = dict(images=tmp_path / 'photos', rest='background', resize=scale > 1)
    import_masks(file, tmp_path / 'out', **given)
    assert np.array_equal(ids(tmp_path / 'out', '1') == 1, shown)


def test_another_size_is_an_error_or_scaled(tmp_path, photos):
    file = labelme(tmp_path / 'x.json', size=(WIDTH // 2, HEIGHT // 2), imagePath='a/1.jpg')
    out, options = tmp_path / 'out', dict(images=photos, rest='background')
    (failed,) = import_masks(file, out, **options).failed
    assert 'x.json: annotation: of 10×8 pixels; expected 20×16, the size of the image' in failed
    assert failed.endswith('--resize') and not out.exists()
    import_masks(file, out, **options, resize=True)
    assert ids(out, 'a/1')[:, :16].all() and not ids(out, 'a/1')[:, 16:].any()


@pytest.mark.parametrize(
    ('source', 'given', 'message'),
    [
        ('x.json', dict(rest=None), '--rest: missing; expected background if every object'),
        ('x.json', dict(images=None), 'none of the 2 annotated ones, such as a/1.jpg; expected'),
        ('gone.json', {}, 'no such file; expected an export'),
        ('x.json', dict(out='masked'), 'holds masks, whose ids have no names without classes.json'),
        ('x.json', dict(out='photos/out'), '--out: .* is read or lies in'),
    ],
)
def test_what_does_not_fit_is_told_at_once(tmp_path, photos, source, given, message):
    exports.coco(tmp_path)
    save(tmp_path / 'masked/masks/1.png', png(np.zeros((2, 2), np.uint8)))
    given = dict(images=photos, rest='background', out='out') | given
    out = tmp_path / given.pop('out')
    with pytest.raises(UserError, match=message):
        import_masks(tmp_path / source, out, **given).require_complete(True)
    assert not (out / 'images').exists()


def test_one_image_twice_and_one_that_is_not_there(tmp_path, photos):
    labelme(tmp_path / 'x/1.json', imagePath='a/1.jpg')
    labelme(tmp_path / 'x/2.json', imagePath='photos/a/1.jpg')
    labelme(tmp_path / 'x/3.json', imagePath='c/1.jpg')
    labelme(tmp_path / 'x/4.json', imagePath='1.jpg')
    done = import_masks(tmp_path / 'x', tmp_path / 'out', images=photos, rest='background')
    assert done.missing == ['c/1.jpg']
    assert 'annotated images without a file: 1 in 1 image: c/1.jpg' in done.describe()
    twice, either = done.failed
    assert 'annotated twice, in' in twice and 'x/1.json and' in twice and 'x/2.json' in twice
    assert '1: stands for a/1 and b/1; expected the folder, too' in either


def test_a_class_that_the_table_lacks_is_an_error(tmp_path, photos):
    save(tmp_path / 'x/labels.txt', b'__ignore__\n_background_\nroad\n')
    labelme(tmp_path / 'x/1.json', 'raod', imagePath='a/1.jpg')
    labelme(tmp_path / 'x/2.json', '__ignore__', imagePath='b/1.jpg')
    done = import_masks(tmp_path / 'x', tmp_path / 'out', images=photos, rest='background')
    assert "class 'raod': expected one of _background_, road" in done.failed[0]
    assert (ids(tmp_path / 'out', 'b/1') == 255).sum() == 64
    table = json.loads((tmp_path / 'out/classes.json').read_text())
    assert [each['name'] for each in table['classes']] == ['_background_', 'road']


def test_two_imports_at_once_never_share_a_table(tmp_path, photos):
    out, first = tmp_path / 'out', labelme(tmp_path / 'x/1.json', imagePath='a/1.jpg')
    with (
        locked_folder(out, 'another import'),
        pytest.raises(UserError, match='out: in use by another import'),
    ):
        import_masks(first, out, images=photos, rest='background')
    assert not (out / 'masks').exists()

    def meanwhile(images):
        import_masks(exports.coco(tmp_path), out, images=photos, rest='ignore')
        return iter(images)

    with pytest.raises(UserError, match='another import changed it meanwhile; expected the same c'):
        import_masks(first, out, images=photos, rest='background', progress=meanwhile)


def test_a_class_named_like_pixels_without_a_label_is_asked_about(tmp_path, photos):
    file, out = labelme(tmp_path / 'x.json', 'Un-labelled', imagePath='a/1.jpg'), tmp_path / 'out'
    options = dict(images=photos, rest='background')
    ways = '--rename Un-labelled= to .*, or --rename Un-labelled=Un-labelled to train it'
    expected = f'class Un-labelled: named like pixels without a label; expected {ways}'
    with pytest.raises(UserError, match=expected):
        import_masks(file, out, **options)
    import_masks(file, out, **options, rename={'Un-labelled': None})
    assert (ids(out, 'a/1') == 255).sum() == 64
    kept = tmp_path / 'kept'
    import_masks(file, kept, **options, rename={'Un-labelled': 'Un-labelled'})
    assert (ids(kept, 'a/1') == 1).sum() == 64 and import_masks(file, kept).unchanged == 1


def test_masks_beside_photos_are_no_photos(tmp_path):
    pixels = np.zeros((HEIGHT, WIDTH), np.uint8)
    pixels[:8, :8] = 255
    noise = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    for n in range(2):
        save(tmp_path / f'x/{n}.png', png(noise))
        save(tmp_path / f'x/{n}_mask.png', png(pixels))
    options = dict(images=tmp_path / 'x', rest='background', binary='crack')
    out = tmp_path / 'out'
    done = import_masks(tmp_path / 'x', out, **options, mask_suffix='_mask.png')
    assert (done.new, done.images) == (2, 2) and set(find_images(out / 'images')) == {'0', '1'}
    with pytest.raises(UserError, match='no image in this folder'):
        import_masks(tmp_path / 'x', tmp_path / 'other', **options)


def test_masks_of_cityscapes_find_their_images(tmp_path):
    for n in range(2):
        save(tmp_path / f'leftImg8bit/a/a_{n}_leftImg8bit.png', png(np.zeros((4, 8, 3), np.uint8)))
        for kind in ('labelIds', 'instanceIds'):
            save(tmp_path / f'gtFine/a/a_{n}_gtFine_{kind}.png', png(np.full((4, 8), 7, np.uint8)))
    options = dict(images=tmp_path / 'leftImg8bit', rest='ignore', colours={'road': (7, 7, 7)})
    out, suffix = tmp_path / 'out', '_gtFine_labelIds.png'
    done = import_masks(tmp_path / 'gtFine', out, **options, mask_suffix=suffix)
    assert done.new == 2 and not ids(out, 'a/a_1_leftImg8bit').any()
