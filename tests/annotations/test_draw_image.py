from functools import partial

import formats
import numpy as np
import pytest
from exports import png, save
from importing import import_masks

from mmseg_cct.annotations.class_table import read_table
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


def labelme_shape(label, points, shape_type='polygon'):
    return dict(label=label, points=np.array(points).tolist(), shape_type=shape_type)


def cvat_polygon(label, ring, **more):
    points = ';'.join(f'{x},{y}' for x, y in ring)
    attributes = ' '.join(f'{key}="{value}"' for key, value in more.items())
    return f'<polygon label="{label}" points="{points}" {attributes}/>'


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

    def run(source, undrawn='background', **options):
        out = tmp_path / f'out{len(list(tmp_path.iterdir()))}'
        done = import_masks(
            source.path, out, images=tmp_path / 'photos', undrawn=undrawn, **options
        )
        if not (out / 'masks/1.png').exists():
            return done, None
        names = np.array([*read_table(out).colors, *[''] * 256], object)[:256]
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
BOX_OF_B = dict(category_id=2, bbox=[30, 20, 20, 10], segmentation=[])


@pytest.mark.parametrize(
    ('form', 'part', 'shape_type'),
    [
        (labelme, labelme_shape('road', LINE, 'linestrip'), 'linestrip'),
        (cvat, f'<skeleton label="road">{SKELETON}</skeleton>', 'skeleton'),
        (coco, BOX_OF_B, 'box'),
        (coco, coco_ring('road', B[::2]), 'polygon of fewer than three points'),
        (label_studio, VECTOR, 'vector'),
    ],
)
def test_the_extent_of_what_is_no_region_is_ignored_amid_background(done, form, part, shape_type):
    imported, names = done(form(done.root, CAR[form], part))
    assert np.array_equal(names == 'car', region(A))
    assert np.array_equal(names == '', region(B))
    assert (names == 'background').sum() == names.size - 400
    assert f'{shape_type}, ignored within its extent' in imported.describe()
    imported, names = done(form(done.root, part), empty=True)  # alone it makes no mask
    assert names is None and imported.unannotated == 1


def test_shapes_without_a_pixel_are_told_and_alone_an_error(done):
    outside = coco_ring('road', np.add(A, [0, 100]))
    imported, _ = done(coco(done.root, CAR[coco], outside))
    assert (
        'shapes without a pixel in the image, not drawn: 1 in 1 image: 1.jpg' in imported.describe()
    )
    failed, names = done(coco(done.root, outside))
    assert names is None and 'no shape lies in the image' in failed.failed[0]


def test_regions_with_iscrowd_are_ignored_unless_they_are_to_be_drawn(done):
    crowd = coco_ring('road', B) | dict(iscrowd=1)
    imported, names = done(coco(done.root, CAR[coco], crowd))
    assert np.array_equal(names == '', region(B)) and '--crowds draw draws' in imported.describe()
    _, names = done(coco(done.root, CAR[coco], crowd), draw_crowds=True)
    assert np.array_equal(names == 'road', region(B))


CORRECTED = ('car', A), ('road', [[2, 2], [28, 2], [28, 18], [2, 18]])


@pytest.mark.parametrize(
    ('form', 'parts', 'top'),
    [
        (cvat, [cvat_polygon(*shape, z_order=n) for n, shape in enumerate(CORRECTED)], 'road'),
        (cvat, [cvat_polygon(*shape, z_order=-n) for n, shape in enumerate(CORRECTED)], 'car'),
        (labelme, [labelme_shape(*shape) for shape in CORRECTED], 'road'),
        (label_studio, [ls_polygon(*shape) for shape in CORRECTED], 'road'),
        (coco, [coco_ring(*shape) for shape in CORRECTED], 'car'),  # has no order: small over large
    ],
)
def test_what_lies_on_top_covers(done, form, parts, top):
    _, names = done(form(done.root, *parts))
    assert np.array_equal(names == top, region(dict(CORRECTED)[top])) and '' not in names
    assert ('car' in names) == (top == 'car')


TRIANGLE = [[4, 4], [24, 4], [4, 14]]


def test_boxes_beside_other_shapes_of_their_class_need_a_decision(done):
    """Files of instances have a box around each region."""
    box = '<box label="car" xtl="4" ytl="4" xbr="24" ybr="14"/>'
    source = cvat(done.root, box, cvat_polygon('car', TRIANGLE))
    imported, _ = done(source)
    assert 'class car has boxes and other shapes: pass --boxes fill if' in imported.failed[0]
    _, names = done(source, boxes='fill')
    assert np.array_equal(names == 'car', region(A))
    _, names = done(source, boxes='ignore')
    assert 90 <= (names == 'car').sum() <= 110
    assert np.array_equal(names != 'background', region(A))  # what else is in the box is ignored
    _, names = done(cvat(done.root, box, cvat_polygon('road', B)))
    assert np.array_equal(names == 'car', region(A))
