import re

import exports
import numpy as np
import pytest
from exports import HEIGHT, WIDTH, png, save, scene
from formats import of_cvat
from importing import SQUARE, ids, import_masks, labelme
from PIL import Image

from mmseg_cct.annotations.class_table import read_table
from mmseg_cct.annotations.readers import require_reader
from mmseg_cct.annotations.source import Source
from mmseg_cct.datasets.files.image_files import find_images, is_validation
from mmseg_cct.datasets.files.images import read_image
from mmseg_cct.errors import UserError


@pytest.mark.parametrize('export', exports.EXPORTS)
def test_every_format_gives_the_same_masks(tmp_path, photos, export):
    source, out = export(tmp_path), tmp_path / 'out'
    done = import_masks(source, out, images=photos, undrawn='background')
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
    import_masks(exports.cvat(tmp_path), out, images=photos, undrawn='ignore')
    assert read_table(out).colors == exports.COLORS
    assert np.array_equal(ids(out, 'a/1'), scene(255, car=0, road=1))
    palette = Image.open(out / 'masks/a/1.png').getpalette()
    assert palette[:6] == np.ravel(list(exports.COLORS.values())).tolist()
    assert palette[-3:] == [255, 255, 255]  # ignored


def test_two_imports_at_once_never_share_a_table(tmp_path, photos):
    out, first = tmp_path / 'out', labelme(tmp_path / 'x/1.json', imagePath='a/1.jpg')

    def meanwhile(images):
        import_masks(exports.coco(tmp_path), out, images=photos, undrawn='ignore')
        return iter(images)

    with pytest.raises(UserError, match='another import changed it; run this one again'):
        import_masks(first, out, images=photos, undrawn='background', progress=meanwhile)


def test_classes_are_renamed_merged_and_ignored_by_later_imports_too(tmp_path, photos):
    source, out, without = exports.cvat(tmp_path), tmp_path / 'out', tmp_path / 'without'
    options = dict(images=photos, undrawn='background')
    import_masks(source, out, **options, rename={'car': 'any', 'road': 'any'})
    assert set(read_table(out).ids) == {'background', 'any'}
    for name in exports.NAMES:
        assert np.array_equal(ids(out, name), np.minimum(scene(0, car=1, road=1), 1))
    assert import_masks(source, out).unchanged == 2  # by the table
    assert import_masks(source, out, rename={'car': 'any'}).unchanged == 2
    import_masks(source, without, **options, rename={'car': None})
    assert set(read_table(without).ids) == {'background', 'road'}
    assert np.array_equal(ids(without, 'a/1'), scene(0, car=255, road=1))
    for name in ('cat', 'car'):  # which the export lacks, and which has masks by another name
        with pytest.raises(UserError, match=f"--rename: '{name}'"):
            import_masks(source, out, rename={name: 'road'})


def test_what_is_listed_without_a_shape_may_be_background(tmp_path, photos):
    file, out = labelme(tmp_path / '1.json', imagePath='a/1.jpg', shapes=[]), tmp_path / 'out'
    done = import_masks(file, out, images=photos, undrawn='background')
    assert done.unannotated == 1
    with pytest.raises(UserError, match=r'1.json'):
        done.require_complete(overwrite=False)
    import_masks(file, out, images=photos, undrawn='background', empty=True)
    assert not ids(out, 'a/1').any()
    assert len(import_masks(file, out).notes) == 1  # the mask is of an earlier import and stays
    with pytest.raises(UserError, match='--empty-is-background'):
        import_masks(file, tmp_path / 'other', images=photos, undrawn='ignore', empty=True)


def test_a_later_import_adds_classes_and_leaves_the_rest_as_told(tmp_path, photos):
    out, first = tmp_path / 'out', labelme(tmp_path / 'x/1.json', imagePath='a/1.jpg')
    import_masks(first, out, images=photos, undrawn='background')
    import_masks(labelme(first, 'bike', imagePath='b/1.jpg'), out, undrawn='ignore')
    assert [set(np.unique(ids(out, name))) for name in exports.NAMES] == [{0, 1}, {2, 255}]
    assert read_table(out).undrawn == 'background'  # as in the first
    second = labelme(tmp_path / 'y/1.json', 'bus', imagePath='a/1.jpg')
    import_masks(second, out / 'val', images=photos)
    assert list(read_table(out).ids) == ['background', 'car', 'bike', 'bus']
    assert (ids(out / 'val', 'a/1') == 3).sum() == 64
    kept = import_masks(second, out)
    assert kept.changed == 1 and (ids(out, 'a/1') == 1).sum() == 64
    done = import_masks(second, out, overwrite=True)
    assert 'pixels unlike those of earlier masks, replaced: 64 in 1 image' in done.describe()


# annotated as the image is shown, or as it is stored where its size tells
@pytest.mark.parametrize(
    ('orientation', 'turned'), [(2, True), (3, True), *((n, t) for n in (5, 6) for t in (0, 1))]
)
def test_a_mask_lies_as_its_image_is_shown(tmp_path, orientation, turned):
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
    points = np.add(SQUARE, [x, y]).tolist()
    file = labelme(tmp_path / '1.json', size=size, points=points, imagePath='1.png')
    import_masks(file, tmp_path / 'out', images=tmp_path / 'photos', undrawn='background')
    assert np.array_equal(ids(tmp_path / 'out', '1') == 1, shown)


def test_what_one_image_lacks_is_its_error_alone(tmp_path, photos):
    """Annotated twice, without a file, of two names, of a class or a size that is not there."""
    save(tmp_path / 'x/labels.txt', b'__ignore__\n_background_\ncar\n')
    save(tmp_path / 'x/0.json', b'{')
    for index, path in enumerate(('a/1', 'photos/a/1', 'c/1', '1'), 1):
        labelme(tmp_path / f'x/{index}.json', imagePath=f'{path}.jpg')
    labelme(tmp_path / 'x/5.json', 'cra', imagePath='b/1.jpg')
    labelme(tmp_path / 'x/6.json', imagePath='unlabelled.jpg', size=(WIDTH // 2, HEIGHT // 2))
    done = import_masks(tmp_path / 'x', tmp_path / 'out', images=photos, undrawn='background')
    assert (done.new, done.missing) == (1, ['c/1.jpg'])
    for number, line in zip((0, 2, 4, 5, 6), done.failed, strict=True):
        assert f'{number}.json' in line
    done.failed.clear()
    with pytest.raises(UserError, match=r'^c/1\.jpg: '):
        done.require_complete(overwrite=False)


@pytest.mark.parametrize(
    ('source', 'arguments', 'key'),
    [
        ('x.json', dict(undrawn=None), '--rest'),
        ('x.json', dict(images=None), '2 images without a file'),
        ('gone.json', {}, 'gone.json'),
        ('x.json', dict(out='masked'), 'masked: holds masks'),
        ('x.json', dict(out='photos/out'), '--out'),
    ],
)
def test_what_does_not_fit_is_told_at_once(tmp_path, photos, source, arguments, key):
    exports.coco(tmp_path)
    save(tmp_path / 'masked/masks/1.png', png(np.zeros((2, 2), np.uint8)))
    arguments = dict(images=photos, undrawn='background', out='out') | arguments
    out = tmp_path / arguments.pop('out')
    with pytest.raises(UserError, match=key):
        import_masks(tmp_path / source, out, **arguments).require_complete(True)
    assert not (out / 'images').exists()


def test_a_class_named_like_pixels_without_a_label_is_asked_about(tmp_path, photos):
    file, out = labelme(tmp_path / 'x.json', 'Un-labelled', imagePath='a/1.jpg'), tmp_path / 'out'
    options = dict(images=photos, undrawn='background')
    with pytest.raises(UserError) as raised:
        import_masks(file, out, **options)
    assert raised.value.problems[0].key == 'class Un-labelled'
    for kept, value in (('Un-labelled', 1), (None, 255)):
        import_masks(file, tmp_path / str(kept), **options, rename={'Un-labelled': kept})
        assert (ids(tmp_path / str(kept), 'a/1') == value).sum() == 64
        assert import_masks(file, tmp_path / str(kept)).unchanged == 1


def test_subsets_for_validation_are_listed_for_the_config(tmp_path, photos):
    for part, name in (('train', 'a'), ('valid', 'b')):
        labelme(tmp_path / f'x/{part}/1.json', imagePath=f'{name}/1.jpg')
    done = import_masks(tmp_path / 'x', tmp_path / 'out', images=photos, undrawn='background')
    assert '1 mask to validate on' in done.describe()
    assert (tmp_path / 'out/val.txt').read_text() == 'b/1\n'


@pytest.mark.parametrize('export', [exports.coco, of_cvat, exports.segmentation_mask])
def test_readers_tell_subsets(tmp_path, export):
    file = export(tmp_path)
    file = getattr(file, 'path', file)
    if export is exports.coco:
        file = file.rename(file.with_name('instances_val2017.json'))
    elif export is exports.segmentation_mask:
        save(file / 'ImageSets/Segmentation/Validation.txt', b'a/1\nb/1\n')
    else:
        file.write_text(file.read_text().replace('<image ', '<image subset="Validation" '))
    source = Source(file)
    for image in require_reader(source).read(source).images:
        assert is_validation(re.split(r'[/_.-]', image.subset))
