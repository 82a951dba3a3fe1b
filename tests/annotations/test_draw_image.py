"""What somebody drew is in the mask, or told; the right masks were worked out first."""

import json
import re

import numpy as np
import pytest
from exports import brush, png, save, write
from PIL import Image

from mmseg_cct.annotations.class_table import read_table
from mmseg_cct.annotations.importer import import_masks
from mmseg_cct.utils.image_files import read_mask

SIZE = WIDTH, HEIGHT = 60, 40
A = [[4, 4], [24, 4], [24, 14], [4, 14]]
B = [[30, 20], [50, 20], [50, 30], [30, 30]]
NAME = {'A': 'car', 'B': 'road'}


def region(ring):
    """The pixels of an upright box."""
    mask = np.zeros((HEIGHT, WIDTH), bool)
    (left, top), _, (right, bottom), _ = ring
    mask[top:bottom, left:right] = True
    return mask


def labelme(root, *shapes):
    content = dict(imagePath='a.png', imageWidth=WIDTH, imageHeight=HEIGHT)
    shapes = [dict(label=label, points=points, **more) for label, points, more in shapes]
    write(root / 'x/a.json', {**content, 'shapes': shapes})
    return root / 'x'


def cvat(root, *elements):
    image = f'<image name="a.png" width="{WIDTH}" height="{HEIGHT}">{"".join(elements)}</image>'
    labels = ''.join(f'<label><name>{name}</name></label>' for name in ('car', 'road'))
    text = f'<annotations><meta><task><labels>{labels}</labels></task></meta>{image}</annotations>'
    save(root / 'x.xml', text.encode())
    return root / 'x.xml'


def cvat_polygon(label, ring, **more):
    points = ';'.join(f'{x},{y}' for x, y in ring)
    given = ' '.join(f'{key}="{value}"' for key, value in more.items())
    return f'<polygon label="{label}" points="{points}" {given}/>'


def coco(root, *segmentations, size=SIZE, **more):
    annotations = [
        dict(id=n, image_id=1, category_id=category, **each)
        for n, (category, each) in enumerate(segmentations)
    ]
    images = [dict(id=1, file_name='a.png', width=size[0], height=size[1])]
    categories = [dict(id=1, name='car'), dict(id=2, name='road')]
    write(
        root / 'x.json', dict(images=images, annotations=annotations, categories=categories, **more)
    )
    return root / 'x.json'


def ring_of(ring):
    return dict(segmentation=[np.ravel(ring).tolist()])


def yolo(root, *lines):
    save(root / 'x/data.yaml', b'names: [car, road]\n')
    save(root / 'x/labels/a.txt', '\n'.join(lines).encode())
    return root / 'x'


def yolo_line(index, numbers):
    return ' '.join(map(str, [index, *np.ravel(numbers)]))


def label_studio(root, *results, data=None):
    size = dict(original_width=WIDTH, original_height=HEIGHT)
    task = dict(id=1, data=data or dict(image='a.png'))
    done = [dict(result=[{**size, **each} for each in results])]
    write(root / 'x.json', [dict(**task, annotations=done)])
    return root / 'x.json'


def percent(ring):
    return (np.array(ring) / SIZE * 100).tolist()


def ls_polygon(label, ring, **more):
    return dict(value=dict(points=percent(ring), polygonlabels=[label]), **more)


def supervisely(root, *things):
    write(root / 'x/meta.json', dict(classes=[dict(title=name) for name in ('car', 'road')]))
    size = dict(width=WIDTH, height=HEIGHT)
    things = [dict(classTitle='car', **thing) for thing in things]
    write(root / 'x/ds/ann/a.png.json', dict(size=size, objects=things))
    return root / 'x'


def sly_polygon(ring):
    # with a fraction, so that it is no list of pixels
    ring = [*ring[:-1], [ring[-1][0], ring[-1][1] + 1e-6]]
    return dict(geometryType='polygon', points=dict(exterior=ring, interior=[]))


@pytest.fixture
def done(tmp_path):
    """Imports a source onto a photo of 60×40; returns the import and `(H, W)` class names."""
    save(tmp_path / 'photos/a.png', png(np.zeros((HEIGHT, WIDTH, 3), np.uint8)))

    def run(source, rest='background', **options):
        out = tmp_path / f'out{len(list(tmp_path.iterdir()))}'
        done = import_masks(source, out, images=tmp_path / 'photos', rest=rest, **options)
        if not (out / 'masks/a.png').exists():
            return done, None
        names = np.array([*read_table(out).colours, *[''] * 256], object)[:256]
        return done, names[read_mask(out / 'masks/a.png')]

    run.root = tmp_path
    return run


LINE = [[30, 20], [40, 25], [50, 30]]
# the car at A as each format has it
CAR = {
    labelme: ('car', A, {}),
    cvat: cvat_polygon('car', A),
    coco: (1, ring_of(A)),
    yolo: yolo_line(0, np.divide(A, SIZE)),
    label_studio: ls_polygon('car', A),
    supervisely: sly_polygon(A),
}
VERTICES = [dict(x=50, y=50), dict(x=250 / 3, y=75)]
SKELETON = '<points label="1" points="30,20"/><points label="2" points="50,30"/>'
CUBOID = 'xtl1="30" ytl1="22" xbr1="45" ybr1="30" xtl2="40" ytl2="20" xbr2="50" ybr2="28"'
BOX_OF_B = (2, dict(bbox=[30, 20, 20, 10], segmentation=[]))
YOLO_BOX_OF_B = yolo_line(1, [40 / 60, 25 / 40, 20 / 60, 10 / 40])


@pytest.mark.parametrize(
    ('form', 'part', 'kind'),
    [
        (labelme, ('road', LINE, dict(shape_type='linestrip')), 'linestrip'),
        (labelme, ('road', [B[0], B[2]], dict(shape_type='line')), 'line'),
        (cvat, '<polyline label="road" points="30,20;40,25;50,30"/>', 'polyline'),
        (cvat, f'<skeleton label="road">{SKELETON}</skeleton>', 'skeleton'),
        (cvat, f'<cuboid label="road" {CUBOID}/>', 'cuboid'),
        (coco, BOX_OF_B, 'box'),
        (yolo, YOLO_BOX_OF_B, 'box'),
        (
            label_studio,
            dict(type='vectorlabels', value=dict(vertices=VERTICES, vectorlabels=['road'])),
            'vectorlabels',
        ),
        (supervisely, dict(geometryType='line', points=dict(exterior=LINE, interior=[])), 'line'),
    ],
)
def test_the_extent_of_what_is_no_region_is_ignored_where_the_rest_is_background(
    done, form, part, kind
):
    told, names = done(form(done.root, CAR[form], part))
    assert np.array_equal(names == 'car', region(A))
    assert np.array_equal(names == '', region(B))
    assert (names == 'background').sum() == names.size - 400
    assert f'| {kind} | 1 | 1: ' in told.describe() and '| ignored (255) within' in told.describe()
    _, names = done(form(done.root, CAR[form], part), rest='ignore')
    assert np.array_equal(names == 'car', region(A)) and (names == '').sum() == names.size - 200


def test_a_point_is_a_pixel_and_what_is_drawn_over_it_stays(done):
    points = [
        ('car', [[2.5, 1]], dict(shape_type='point')),
        ('car', [[9, 9]], dict(shape_type='point')),
    ]
    _, names = done(labelme(done.root, ('road', A, {}), *points))
    assert np.array_equal(names == 'road', region(A))
    assert np.argwhere(names == '').tolist() == [[1, 2]]


def test_a_rotated_box_of_xanylabeling_is_a_region(done):
    diamond = [[30, 5], [45, 20], [30, 35], [15, 20]]
    told, names = done(labelme(done.root, ('car', diamond, dict(shape_type='rotation'))))
    assert abs((names == 'car').sum() - 450) < 25 and not told.told.describe()


SWAPPED = [[5, 45], [9, 45], [9, 55]]


@pytest.mark.parametrize(
    ('form', 'part', 'guess'),
    [
        (yolo, yolo_line(0, A), 'like pixels; expected shares'),
        (yolo, yolo_line(0, np.subtract(A, [4, 4])), 'like pixels; expected sh'),
        (coco, (1, ring_of(np.divide(A, SIZE))), 'like shares of the sides; exp'),
        (labelme, ('car', [[0, 0], [1, 0], [1, 1]], {}), 'like shares of the'),
        (coco, (1, ring_of(SWAPPED)), 'are they swapped?'),
        (cvat, cvat_polygon('car', SWAPPED), 'are they swapped?'),
        (label_studio, ls_polygon('car', np.add(A, 200)), 'from 204,204 to 224,214'),
        (labelme, ('car', np.subtract(A, 90).tolist(), {}), 'pixels of this image'),
        (coco, (1, ring_of([[5, 5], [9, 9], [7, 7]])), 'no shape covers a pixel'),
    ],
)
def test_shapes_none_of_which_covers_a_pixel_are_an_error_that_guesses_the_cause(
    done, form, part, guess
):
    failed, names = done(form(done.root, part))
    assert names is None and guess in str(failed.failed)


def test_a_shape_without_a_pixel_is_told_beside_others(done):
    outside = np.add(A, [0, 100])
    told, names = done(coco(done.root, (1, ring_of(A)), (2, ring_of(outside))))
    assert np.array_equal(names == 'car', region(A))
    assert '| shapes without a pixel in the image | 1 | 1: a.png |' in told.describe()
    half = np.add(A, [-16, 0])
    told, _ = done(coco(done.root, (1, ring_of(A)), (2, ring_of(half))))
    assert '| shapes of which half lies outside | 1 | 1: a.png | cut: x and y sw' in told.describe()


@pytest.mark.parametrize(
    ('form', 'part'),
    [
        (coco, (2, dict(segmentation=[[1, 1, 2, 2]]))),
        (coco, (1, dict(segmentation=[[]]))),
        (coco, (2, dict(segmentation=[[1, 1, 2, 2, 3]]))),
        (coco, (2, dict(segmentation=dict(size=[3, 3], counts=[9]), bbox=[0] * 4))),
        (labelme, ('road', A[:2], {})),
        (labelme, ('road', [[1, 1]], dict(shape_type='circle'))),
        (label_studio, ls_polygon('road', A[:2])),
        (yolo, '1 0.1 0.1'),
        (yolo, '1 0.1 0.1 0.2 0.2 0.3'),
        (cvat, cvat_polygon('road', [[1, 1], [2, 2]])),
        (cvat, '<tag label="x"/>'),
        (supervisely, sly_polygon(A[:2])),
    ],
)
def test_a_bad_part_costs_neither_its_image_nor_a_word(done, form, part):
    told, names = done(form(done.root, CAR[form], part))
    assert not told.failed and np.array_equal(names == 'car', region(A))
    assert re.search(r'\| 1 \| 1: (ds/|images/)?a', told.describe())


def test_coordinates_of_coco_that_are_not_nested_are_read(done):
    told, names = done(coco(done.root, (1, dict(segmentation=np.ravel(A).tolist()))))
    assert np.array_equal(names == 'car', region(A)) and not told.told.describe()


CORRECTED = ('car', A), ('road', [[2, 2], [28, 2], [28, 18], [2, 18]])


@pytest.mark.parametrize(
    ('form', 'parts'),
    [
        (cvat, [cvat_polygon(*each, z_order=1) for each in CORRECTED]),
        (cvat, [cvat_polygon(*each) for each in CORRECTED]),
        (labelme, [(*each, {}) for each in CORRECTED]),
        (label_studio, [ls_polygon(*each) for each in CORRECTED]),
        (
            label_studio,
            [
                CAR[label_studio],
                dict(value=dict(rle=brush(region(CORRECTED[1][1])), brushlabels=['road'])),
            ],
        ),
    ],
)
def test_a_later_shape_covers_a_smaller_one_and_what_it_hides_is_told(done, form, parts):
    told, names = done(form(done.root, *parts))
    assert np.array_equal(names == 'road', region(CORRECTED[1][1])) and 'car' not in names
    assert '| shapes under others of another class | 1 |' in told.describe()


def test_a_format_without_order_keeps_small_over_large_and_says_so(done):
    told, names = done(
        coco(done.root, *((n + 1, ring_of(r)) for n, (_, r) in enumerate(CORRECTED)))
    )
    assert np.array_equal(names == 'car', region(A))
    assert '| overlaps in a format without order | 1 | 1: a.png | the smaller |' in told.describe()
    told, _ = done(coco(done.root, (1, ring_of(A)), (2, ring_of(B))))
    assert not told.told.describe()


@pytest.mark.parametrize(('orientation', 'stored'), [(6, True), (8, True), (3, False), (6, False)])
def test_coco_of_label_studio_has_shares_of_the_image_as_shown(done, orientation, stored):
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = Image.new('RGB', SIZE if orientation > 4 else SIZE[::-1])
    image.save(done.root / 'photos/a.png', exif=exif)
    shown = (40, 60)  # width and height
    size = shown[::-1] if stored else shown
    ring = np.multiply([[0.1, 0.6], [0.5, 0.6], [0.5, 0.9], [0.1, 0.9]], size)
    source = coco(done.root, (1, ring_of(ring)), size=size, info=dict(contributor='Label Studio'))
    told, names = done(source)
    right = np.zeros((60, 40), bool)
    right[36:54, 4:20] = True
    assert np.array_equal(names == 'car', right)
    assert '| photos turned by EXIF | 1 | 1: a.png | read as shown |' in told.describe()


def test_an_annotation_of_another_size_is_an_error_for_shares_too(done):
    source = coco(done.root, (1, ring_of(A)), size=(6, 4), info=dict(contributor='Label Studio'))
    failed, _ = done(source)
    assert 'of 6×4 pixels; expected 60×40, the size of the image, or --resize' in failed.failed[0]


def test_each_region_of_label_studio_is_on_its_own_image(done):
    save(done.root / 'photos/b.png', png(np.zeros((HEIGHT, WIDTH, 3), np.uint8)))
    both = ls_polygon('car', A, to_name='rgb'), ls_polygon('road', B, to_name='depth')
    source = label_studio(done.root, *both, data=dict(rgb='a.png', depth='b.png'))
    told, names = done(source)
    assert told.new == 2 and np.array_equal(names == 'car', region(A)) and 'road' not in names
    pages = ls_polygon('car', A, item_index=0), ls_polygon('road', B, item_index=1)
    source = label_studio(done.root, *pages, data=dict(pages=['a.png', 'b.png']))
    told, names = done(source)
    assert told.new == 2 and np.array_equal(names == 'car', region(A)) and 'road' not in names
    for data in (dict(x='a.png', y='b.png'), dict(x=['a.png', 'b.png'])):
        failed, names = done(label_studio(done.root, both[0], data=data))
        assert names is None and 'expected' in failed.failed[0]


def test_boxes_that_bound_are_no_regions_unless_they_are_to_be_filled(done):
    triangle = [[4, 4], [24, 4], [4, 14]]
    inside = '<box label="car" xtl="4" ytl="4" xbr="24" ybr="14"/>', cvat_polygon('car', triangle)
    for form, *parts in (
        (cvat, *inside),
        (coco, CAR[coco], (1, ring_of(triangle))),
        (coco, (1, dict(bbox=[4, 4, 20, 10])), (1, ring_of(triangle))),
        (labelme, ('car', triangle, {}), ('car', A[::2], dict(shape_type='rectangle'))),
        (
            yolo,
            yolo_line(0, np.divide(triangle, SIZE)),
            yolo_line(0, [14 / 60, 9 / 40, 20 / 60, 10 / 40]),
        ),
    ):
        told, names = done(form(done.root, *parts))
        assert 90 <= (names == 'car').sum() <= 110 and '' not in names
        assert '| boxes that bound shapes | 1 | 1: ' in told.describe()
    _, names = done(cvat(done.root, *inside), fill_boxes=True)
    assert np.array_equal(names == 'car', region(A))
    _, names = done(coco(done.root, CAR[coco], (2, ring_of(B))))  # two buildings
    assert np.array_equal(names == 'car', region(A))


@pytest.mark.parametrize(
    ('form', 'parts'),
    [
        (coco, [CAR[coco], BOX_OF_B]),
        (yolo, [CAR[yolo], YOLO_BOX_OF_B]),
        (coco, [(1, dict(bbox=[4, 4, 20, 10])), BOX_OF_B]),
    ],
)
def test_boxes_that_come_without_a_polygon_are_filled_if_asked(done, form, parts):
    told, names = done(form(done.root, *parts), fill_boxes=True)
    assert np.array_equal(names == 'car', region(A)) and np.array_equal(names == 'road', region(B))
    assert not told.told.describe()
    ignored, _ = done(form(done.root, *parts))
    assert '; --boxes fill draws it' in ignored.describe()


def test_a_box_far_away_costs_its_image_alone(done):
    save(done.root / 'photos/b.png', png(np.zeros((HEIGHT, WIDTH, 3), np.uint8)))
    source = coco(done.root, (1, ring_of(A)))
    content = json.loads(source.read_text())
    content['images'].insert(0, dict(content['images'][0], id=0, file_name='b.png'))
    content['annotations'].append(dict(id=9, image_id=0, category_id=1, bbox=[0, 0, 1e12, 9]))
    write(source, content)
    told, names = done(source, fill_boxes=True)
    assert 'b.png: polygon: a point at 1000000000000.0; expected pixels' in told.failed[0]
    assert told.new == 1 and np.array_equal(names == 'car', region(A))
