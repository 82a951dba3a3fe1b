import numpy as np
import pytest
from exports import png, save
from formats import BOX, SIZE, drawn, of_coco, of_cvat, of_label_studio, of_labelme

from mmseg_cct.annotations.readers import coco, cvat, labelme, require_reader, segmentation_mask
from mmseg_cct.annotations.source import Source
from mmseg_cct.errors import UserError

OTHER_SIZE = dict(segmentation=dict(size=[5, 6], counts=[20, 10]))
NO_PICTURE = dict(shape_type='mask', mask='%', points=[[0, 0]])
HALF = dict(type='rectanglelabels', value=dict(x=1, height=1, rectanglelabels=['car']))
BOX_OF = '<box label="{}" xtl="2" ytl="2" xbr="8" ybr="6"/>'


@pytest.mark.parametrize(
    ('form', 'part', 'location'),
    [
        (of_coco, dict(segmentation=[[1, 2, 3]]), 'annotation 5'),
        (of_coco, OTHER_SIZE, 'annotation 5: RLE'),
        (of_coco, dict(segmentation=[BOX], category_id=3), 'annotation 5'),
        (of_cvat, '<box label="car" xtl="x"/>', 'box 0'),
        (of_cvat, '<spline label="car" points="1,1;2,2"/>', 'spline 0: shape'),
        (of_cvat, BOX_OF.format(' '), "box 0: class ' '"),
        (of_labelme, NO_PICTURE, 'shapes[0]: picture'),
        (of_labelme, dict(shape_type='spline', points=[[5, 5], [5, 8]]), 'shapes[0]: shape_type'),
        (of_label_studio, dict(HALF, image_rotation=90), 'result[0]: image_rotation=90'),
        (of_label_studio, dict(type='splinelabels', value={}), "result[0]: type 'splinelabels'"),
    ],
)
def test_what_cannot_be_drawn_is_an_error_that_says_where(tmp_path, form, part, location):
    source = form(tmp_path, part)
    (image,) = require_reader(source).read(source).images
    with pytest.raises(UserError) as raised:
        list(image.parts)
    (problem,) = raised.value.problems
    assert str(problem.key).startswith(location) and '\n' not in str(problem)


@pytest.mark.parametrize(
    ('name', 'text', 'title'),
    [
        ('labels/0.txt', '0 0.1 0.1 0.5 0.1 0.5 0.5\n', 'YOLO'),
        ('via.json', '{"a.jpg1": {"filename": "a.jpg", "file_attributes": {}}}', 'VIA'),
        ('via.csv', 'filename,file_size,file_attributes,region_count\n', 'VIA'),
        ('ann/a.jpg.json', '{"objects": [{"classTitle": "car"}]}', 'Supervisely'),
        ('a.geojson', '{"type": "FeatureCollection", "features": []}', 'GeoJSON'),
        ('train.csv', 'ImageId,EncodedPixels\na.jpg,1 3\n', 'Kaggle'),
    ],
)
def test_a_format_that_is_not_read_is_named(tmp_path, name, text, title):
    save(tmp_path / name, text.encode())
    with pytest.raises(UserError, match=f'{name}: {title}.* expected '):
        require_reader(Source(tmp_path))


def test_masks_of_roboflow_have_a_table_of_ids(tmp_path):
    for part in ('train', 'valid'):
        mask = np.uint8([[0, 2], [1, 1]])
        save(tmp_path / f'{part}/_classes.csv', b'Pixel Value, Class\n0, rest\n1, car\n2, road\n')
        save(tmp_path / f'{part}/a.rf.0_mask.png', png(mask))
        save(tmp_path / f'{part}/a.rf.0.jpg', png(mask))
    source = Source(tmp_path)
    read = require_reader(source).read(source)
    assert list(read.classes) == ['rest', 'car', 'road']
    assert [image.name for image in read.images] == ['train/a.rf.0', 'valid/a.rf.0']
    assert list(source.images()) == ['train/a.rf.0', 'valid/a.rf.0']
    save(tmp_path / 'valid/_classes.csv', b'Pixel Value, Class\n1, rest\n')
    with pytest.raises(UserError, match=r'valid/_classes\.csv: id 1'):
        require_reader(source).read(source)


RLE = dict(size=[10, 12], counts=[20, 100])


def test_parts_of_an_object_add_up_and_empty_ones_are_none(tmp_path):
    overlapping = [BOX, [4, 2, 10, 2, 10, 6, 4, 6]]
    assert (drawn(coco.read(of_coco(tmp_path, dict(segmentation=overlapping)))) == 0).sum() == 32
    for segmentation in ([BOX, []], BOX):  # the second is of scripts
        (image,) = coco.read(of_coco(tmp_path, dict(segmentation=segmentation))).images
        (shape,) = image.parts
        assert np.array_equal(shape.polygons[0].reshape(-1), BOX)


def test_runs_go_down_the_columns_and_ids_may_be_text(tmp_path):
    source = of_coco(tmp_path, dict(segmentation=RLE, iscrowd=1, image_id='1', category_id='1'))
    assert (drawn(coco.read(source))[:, 2:] == 0).all()
    (image,) = coco.read(source).images
    assert [part.is_crowd for part in image.parts] == [True]


def test_what_has_no_region_lies_where_its_box_or_keypoints_do(tmp_path):
    turned = dict(bbox=[2, 2, 6, 4], attributes=dict(rotation=90))
    keypoints = dict(keypoints=[3, 4, 2, 7, 8, 1])
    source = of_coco(tmp_path, dict(bbox=[2, 2, 6, 4]), turned, keypoints, dict(caption='a'))
    (image,) = coco.read(source).images
    box, turned, keypoints = image.parts
    assert [part.left_out for part in (box, turned, keypoints)] == ['box', 'box', 'keypoints']
    assert box.extent.tolist() == [[2, 2], [8, 6]]
    assert np.allclose(turned.extent, [[3, 1], [7, 7]])
    assert keypoints.extent.tolist() == [[3, 4], [7, 8]]


def test_files_in_several_folders_are_of_the_images_beside_them(tmp_path):
    for folder in ('train', 'valid'):
        of_coco(tmp_path / folder, file='_annotations.coco.json')
        save(tmp_path / folder / '1.jpg', b'')
    source = Source(tmp_path)
    assert require_reader(source) is coco
    annotations = coco.read(source)
    assert list(annotations.classes) == ['car', 'road']
    assert [image.name for image in annotations.images] == ['train/1.jpg', 'valid/1.jpg']


@pytest.mark.parametrize(
    ('shape', 'pixels'),
    [
        ('<box label="car" xtl="2" ytl="2" xbr="8" ybr="6" rotation="90"/>', (5, 4, 4, 6)),
        ('<box label="car" xtl="2" ytl="2" xbr="8" ybr="6"/>', (5, 4, 6, 4)),
        ('<ellipse label="car" cx="5" cy="4" rx="3" ry="2"/>', (5, 4, 6, 4)),
        ('<ellipse label="car" cx="5" cy="4" rx="3" ry="2" rotation="90"/>', (5, 4, 4, 6)),
    ],
)
def test_boxes_and_ellipses_turn_about_their_centre(tmp_path, shape, pixels):
    y, x = np.nonzero(drawn(cvat.read(of_cvat(tmp_path, shape))) == 0)
    box = (x.min() + x.max() + 1) / 2, (y.min() + y.max() + 1) / 2, np.ptp(x) + 1, np.ptp(y) + 1
    assert box == pixels
    share = len(x) / (pixels[2] * pixels[3])
    assert share == pytest.approx(np.pi / 4, abs=0.06) if 'ellipse' in shape else share == 1


CORNERS = np.reshape(BOX, (4, 2)).tolist()


def test_circles_rectangles_and_what_is_ignored(tmp_path):
    source = of_labelme(tmp_path, dict(shape_type='circle', points=[[5, 5], [5, 8]]))
    disc = drawn(labelme.read(source)) == 0
    assert disc.sum() == pytest.approx(np.pi * 9, abs=4) and disc[2:8, 5].all()
    turned = 'quadrilateral', 'rotation'  # the latter of X-AnyLabeling
    for shape_type, points in (
        ('rectangle', [[8, 6], [2, 2]]),
        *((shape_type, CORNERS) for shape_type in turned),
    ):
        source = of_labelme(tmp_path, dict(shape_type=shape_type, points=points))
        assert (drawn(labelme.read(source)) == 0).sum() == 24
    annotations = labelme.read(of_labelme(tmp_path, dict(label='__ignore__', points=CORNERS)))
    assert (drawn(annotations) == 255).sum() == 24 and not annotations.classes


def labels(folder, pixels, lines):
    save(folder / 'SegmentationClass/1.png', png(np.array([pixels], np.uint8)))
    save(folder / 'labelmap.txt', lines.encode())
    source = Source(folder)
    assert require_reader(source) is segmentation_mask
    (image,) = segmentation_mask.read(source).images
    return [shape.label for shape in image.parts]


def test_a_table_without_colours_has_those_of_voc(tmp_path):
    """As Datumaro writes it."""
    names = ['background', *(f'c{n}' for n in range(1, 30))]
    pixels = (0, 0, 0), (192, 128, 128), (224, 224, 192)
    lines = '\n'.join(f'{name}:::' for name in names)
    assert labels(tmp_path, pixels, lines) == ['c15', None]
    with pytest.raises(UserError, match='colour 1,2,3'):
        labels(tmp_path, [(1, 2, 3)], lines)


def test_only_the_colour_of_what_is_not_drawn_is_undrawn(tmp_path):
    pixels = np.zeros((*SIZE[::-1], 3), np.uint8)
    pixels[:, 6:] = (0, 215, 255)
    pixels[0] = (224, 224, 192)
    save(tmp_path / 'SegmentationClass/1.png', png(pixels))
    for lines, background, left in (
        ('Background:0,215,255::\nbackground:0,0,0::\nvoid:224,224,192::', 0, 9),
        ('background:0,215,255::', 0, 9),
        ('road:0,0,0::\nbackground:0,215,255::', 1, 0),
    ):
        save(tmp_path / 'labelmap.txt', lines.encode())
        annotations = segmentation_mask.read(Source(tmp_path))
        mask = drawn(annotations)
        assert (mask[1:, 6:] == background).all() and (mask[1:, :6] == left).all(), lines
        assert (mask[0] == 255).all() and 'void' not in annotations.classes
