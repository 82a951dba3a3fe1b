"""What somebody drew is in the mask, or told; the right masks were worked out first."""

import json
from functools import partial

import formats
import numpy as np
import pytest
from exports import brush, png, save, write
from PIL import Image

from mmseg_cct.annotations import draw_image
from mmseg_cct.annotations.class_table import read_table
from mmseg_cct.annotations.draw_image import bounding_boxes
from mmseg_cct.annotations.importer import import_masks
from mmseg_cct.annotations.shapes import LeftOut, Shape
from mmseg_cct.datasets.files.images import read_mask

SIZE = WIDTH, HEIGHT = 60, 40
A = [[4, 4], [24, 4], [24, 14], [4, 14]]
B = [[30, 20], [50, 20], [50, 30], [30, 30]]
PHOTO = png(np.zeros((HEIGHT, WIDTH, 3), np.uint8))
coco, cvat, labelme, label_studio = (
    partial(getattr(formats, f'of_{name}'), size=SIZE)
    for name in ('coco', 'cvat', 'labelme', 'label_studio')
)


def region(ring):
    """The pixels of an upright box."""
    mask = np.zeros((HEIGHT, WIDTH), bool)
    (left, top), _, (right, bottom), _ = ring
    mask[top:bottom, left:right] = True
    return mask


def labelme_shape(label, points, kind='polygon'):
    return dict(label=label, points=np.array(points).tolist(), shape_type=kind)


def cvat_polygon(label, ring, **more):
    points = ';'.join(f'{x},{y}' for x, y in ring)
    given = ' '.join(f'{key}="{value}"' for key, value in more.items())
    return f'<polygon label="{label}" points="{points}" {given}/>'


def coco_ring(label, ring):
    number = 1 + formats.CLASSES.index(label)
    return dict(category_id=number, segmentation=[np.ravel(ring).tolist()])


def ls_polygon(label, ring, **more):
    points = (np.array(ring) / SIZE * 100).tolist()
    return dict(type='polygonlabels', value=dict(points=points, polygonlabels=[label]), **more)


@pytest.fixture
def done(tmp_path):
    """Imports a source onto a photo of 60×40; returns the import and `(H, W)` class names."""
    save(tmp_path / 'photos/1.png', PHOTO)

    def run(source, rest='background', **options):
        out = tmp_path / f'out{len(list(tmp_path.iterdir()))}'
        done = import_masks(source.path, out, images=tmp_path / 'photos', rest=rest, **options)
        if not (out / 'masks/1.png').exists():
            return done, None
        names = np.array([*read_table(out).colours, *[''] * 256], object)[:256]
        return done, names[read_mask(out / 'masks/1.png')]

    run.root = tmp_path
    return run


LINE = [[30, 20], [40, 25], [50, 30]]
# the car at A as each format has it
CAR = {
    labelme: labelme_shape('car', A),
    cvat: cvat_polygon('car', A),
    coco: coco_ring('car', A),
    label_studio: ls_polygon('car', A),
}
VERTICES = [dict(x=50, y=50), dict(x=250 / 3, y=75)]
VECTOR = dict(type='vectorlabels', value=dict(vertices=VERTICES, vectorlabels=['road']))
SKELETON = '<points label="1" points="30,20"/><points label="2" points="50,30"/>'
CUBOID = 'xtl1="30" ytl1="22" xbr1="45" ybr1="30" xtl2="40" ytl2="20" xbr2="50" ybr2="28"'
BOX_OF_A = dict(category_id=1, bbox=[4, 4, 20, 10])
BOX_OF_B = dict(category_id=2, bbox=[30, 20, 20, 10], segmentation=[])


@pytest.mark.parametrize(
    ('form', 'part', 'kind'),
    [
        (labelme, labelme_shape('road', LINE, 'linestrip'), 'linestrip'),
        (labelme, labelme_shape('road', B[::2], 'line'), 'line'),
        (cvat, '<polyline label="road" points="30,20;40,25;50,30"/>', 'polyline'),
        (cvat, f'<skeleton label="road">{SKELETON}</skeleton>', 'skeleton'),
        (cvat, f'<cuboid label="road" {CUBOID}/>', 'cuboid'),
        (coco, BOX_OF_B, 'box'),
        (coco, coco_ring('road', B[::2]), 'polygon of fewer than three points'),
        (label_studio, VECTOR, 'vector'),
    ],
)
def test_the_extent_of_what_is_no_region_is_ignored_amid_background(done, form, part, kind):
    told, names = done(form(done.root, CAR[form], part))
    assert np.array_equal(names == 'car', region(A))
    assert np.array_equal(names == '', region(B))
    assert (names == 'background').sum() == names.size - 400
    assert f'{kind}, ignored within its extent' in told.describe()
    _, names = done(form(done.root, CAR[form], part), rest='ignore')
    assert np.array_equal(names == 'car', region(A)) and (names == '').sum() == names.size - 200
    told, names = done(form(done.root, part), empty=True)  # alone it makes no mask
    assert names is None and told.bare == 1


def test_a_point_is_a_pixel_and_what_is_drawn_over_it_stays(done):
    points = [labelme_shape('car', [place], 'point') for place in ([2.5, 1], [9, 9])]
    _, names = done(labelme(done.root, labelme_shape('road', A), *points))
    assert np.array_equal(names == 'road', region(A))
    assert np.argwhere(names == '').tolist() == [[1, 2]]


def test_shapes_without_a_pixel_are_told_and_alone_an_error(done):
    outside = coco_ring('road', np.add(A, [0, 100]))
    told, names = done(coco(done.root, CAR[coco], outside))
    assert np.array_equal(names == 'car', region(A))
    assert 'shapes without a pixel in the image, not drawn: 1 in 1 image: 1.jpg' in told.describe()
    failed, names = done(coco(done.root, outside))
    assert names is None and 'no shape covers a pixel, from 4,104 to 24,114' in failed.failed[0]


def test_regions_with_iscrowd_are_ignored_unless_they_are_to_be_drawn(done):
    crowd = coco_ring('road', B) | dict(iscrowd=1)
    told, names = done(coco(done.root, CAR[coco], crowd))
    assert np.array_equal(names == '', region(B)) and '--crowds draw draws' in told.describe()
    _, names = done(coco(done.root, CAR[coco], crowd), draw_crowds=True)
    assert np.array_equal(names == 'road', region(B))


def test_masks_that_do_not_fit_into_memory_are_refused(done, monkeypatch):
    mask = dict(size=[HEIGHT, WIDTH], counts=[0, HEIGHT * WIDTH])
    parts = [dict(segmentation=mask, category_id=1)] * 3
    monkeypatch.setattr(draw_image, '_MOST', 2 * HEIGHT * WIDTH)
    assert 'masks: ' in done(coco(done.root, *parts))[0].failed[0]
    # a mask larger than the photo is not even made
    huge = '<mask label="car" rle="x" left="0" top="0" width="16384" height="16384"/>'
    assert 'mask: 16384×16384' in done(cvat(done.root, huge))[0].failed[0]
    told, _ = done(coco(done.root, *parts, size=(16384, 16384)))
    assert 'of 16384×16384 pixels; expected 60×40' in told.failed[0]


CORRECTED = ('car', A), ('road', [[2, 2], [28, 2], [28, 18], [2, 18]])
BRUSHED = dict(
    type='brushlabels', value=dict(rle=brush(region(CORRECTED[1][1])), brushlabels=['road'])
)


@pytest.mark.parametrize(
    ('form', 'parts'),
    [
        (cvat, [cvat_polygon(*each, z_order=1) for each in CORRECTED]),
        (cvat, [cvat_polygon(*each) for each in CORRECTED]),
        (labelme, [labelme_shape(*each) for each in CORRECTED]),
        (label_studio, [ls_polygon(*each) for each in CORRECTED]),
        (label_studio, [CAR[label_studio], BRUSHED]),
    ],
)
def test_a_later_shape_covers_a_smaller_one(done, form, parts):
    _, names = done(form(done.root, *parts))
    assert np.array_equal(names == 'road', region(CORRECTED[1][1])) and 'car' not in names


def test_a_format_without_order_keeps_small_over_large(done):
    told, names = done(coco(done.root, *(coco_ring(*each) for each in CORRECTED)))
    assert np.array_equal(names == 'car', region(A)) and not told.told


OF_LABEL_STUDIO = dict(info=dict(contributor='Label Studio'))


@pytest.mark.parametrize(('orientation', 'stored'), [(6, True), (8, True), (3, False), (6, False)])
def test_coco_of_label_studio_has_shares_of_the_image_as_shown(done, orientation, stored):
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = Image.new('RGB', SIZE if orientation > 4 else SIZE[::-1])
    image.save(done.root / 'photos/1.png', exif=exif)
    shown = (40, 60)  # width and height
    size = shown[::-1] if stored else shown
    ring = np.multiply([[0.1, 0.6], [0.5, 0.6], [0.5, 0.9], [0.1, 0.9]], size)
    told, names = done(coco(done.root, coco_ring('car', ring), **OF_LABEL_STUDIO, size=size))
    right = np.zeros((60, 40), bool)
    right[36:54, 4:20] = True
    assert np.array_equal(names == 'car', right)
    assert 'photos turned by EXIF, read as shown: 1 in 1 image: 1.jpg' in told.describe()


def test_boxes_that_bound_are_no_regions_unless_they_are_to_be_filled(done):
    triangle = [[4, 4], [24, 4], [4, 14]]
    inside = '<box label="car" xtl="4" ytl="4" xbr="24" ybr="14"/>', cvat_polygon('car', triangle)
    for form, *parts in (
        (cvat, *inside),
        (coco, CAR[coco], coco_ring('car', triangle)),
        (coco, BOX_OF_A, coco_ring('car', triangle)),
        (labelme, labelme_shape('car', triangle), labelme_shape('car', A[::2], 'rectangle')),
    ):
        told, names = done(form(done.root, *parts))
        assert 90 <= (names == 'car').sum() <= 110 and '' not in names
        assert 'boxes that bound shapes, not drawn: 1 in 1 image' in told.describe()
    _, names = done(cvat(done.root, *inside), fill_boxes=True)
    assert np.array_equal(names == 'car', region(A))
    _, names = done(coco(done.root, CAR[coco], coco_ring('road', B)))  # two buildings
    assert np.array_equal(names == 'car', region(A))


@pytest.mark.parametrize('parts', [[CAR[coco], BOX_OF_B], [BOX_OF_A, BOX_OF_B]])
def test_boxes_that_come_without_a_polygon_are_filled_if_asked(done, parts):
    told, names = done(coco(done.root, *parts), fill_boxes=True)
    assert np.array_equal(names == 'car', region(A)) and np.array_equal(names == 'road', region(B))
    assert not told.told
    ignored, _ = done(coco(done.root, *parts))
    assert '; --boxes fill draws it' in ignored.describe()


def test_a_box_far_away_costs_its_image_alone(done):
    save(done.root / 'photos/2.png', PHOTO)
    source = coco(done.root, CAR[coco])
    content = json.loads(source.path.read_text())
    content['images'].insert(0, dict(content['images'][0], id=0, file_name='2.png'))
    content['annotations'].append(dict(id=9, image_id=0, category_id=1, bbox=[0, 0, 1e12, 9]))
    write(source.path, content)
    told, names = done(source)
    assert '2.png: annotation 9: shape' in told.failed[0]
    assert told.new == 1 and np.array_equal(names == 'car', region(A))


# Boxes of files of instances bound their objects; other boxes are regions.
TRIANGLE = np.array([[10, 10], [50, 20], [20, 40]], float)
OTHER = np.add(TRIANGLE, [60, 0])


def box(left, top, right, bottom, label='car', **more):
    ring = np.array([[left, top], [right, top], [right, bottom], [left, bottom]], float)
    return Shape(label, [ring], is_box=True, **more)


@pytest.mark.parametrize(
    ('drawn', 'bounds'),
    [
        (box(10, 10, 50, 40), True),
        (box(9, 8, 51, 42), True),  # by hand
        (box(10, 10, 50, 40, 'road'), False),
        (box(10, 10, 40, 40), False),
        (box(0, 0, 60, 60), False),
        (box(10, 10, 110, 40), False),
        (box(10, 10, 110, 40, group=3), False),
        (box(0, 0, 60, 60, group=1), True),  # loosely around the shape of its group
        (box(0, 0, 60, 60, 'road', group=1), False),
        (box(10, 10, 50, 40, 'any', group=1), True),
        (box(10, 10, 110, 40, group=2), True),  # around both parts
        (box(60, 5, 65, 10, group=1), False),  # another part
        (LeftOut('box', TRIANGLE, 'car', is_box=True), True),
        (LeftOut('polyline', TRIANGLE, 'car'), False),
        (Shape('car', [TRIANGLE]), False),
    ],
)
def test_a_box_bounds_what_has_its_extent_or_group(drawn, bounds):
    groups = (2, 2) if getattr(drawn, 'group', None) == 2 else (1, None)
    objects = [Shape('car', [ring], group=g) for ring, g in zip((TRIANGLE, OTHER), groups)]
    assert bounding_boxes([drawn, *objects]) == ([drawn] if bounds else [])


def test_the_parts_of_a_shape_count_together_and_empty_ones_bound_nothing():
    around, mask = box(10, 10, 50, 40), np.zeros((30, 40), bool)
    empty = Shape('car', mask=mask.copy(), offset=(10, 10))
    assert bounding_boxes([around, box(10, 10, 50, 40), empty]) == []
    mask[0, 0] = mask[-1, -1] = True
    assert bounding_boxes([around, Shape('car', mask=mask, offset=(10, 10))]) == [around]
