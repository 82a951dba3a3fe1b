"""What is particular to a format, beside the scene that all of them export."""

import base64
import json
import re
import zipfile
import zlib

import numpy as np
import pytest
from exports import COLOURS, brush, save, write
from PIL import Image

from mmseg_cct.annotations.rasterize import rasterize
from mmseg_cct.annotations.readers import (
    coco,
    cvat,
    label_studio,
    labelme,
    require_reader,
    segmentation_mask,
    supervisely,
    yolo,
)
from mmseg_cct.annotations.source import Source
from mmseg_cct.errors import UserError

SIZE = 12, 10
BOX = [2, 2, 8, 2, 8, 6, 2, 6]


def drawn(annotations):
    """Ids of the only image by the reader's classes, 9 elsewhere."""
    (image,) = annotations.images
    assert not isinstance(image, UserError), image
    ids = {name: index for index, name in enumerate(annotations.classes)}
    return rasterize(image.shapes, image.size or SIZE, ids, 9).mask


def kinds(image):
    return [part.kind for part in image.left_out]


def only_problem(annotations):
    """What is wrong with the only image, or with its only annotation."""
    (problem,) = annotations.images
    return str(problem) if isinstance(problem, UserError) else problem.left_out[0].fault


def of_coco(path, segmentation=(BOX,), categories=None, file='1.jpg', **more):
    annotation = dict(id=5, image_id=1, category_id=1, segmentation=list(segmentation), **more)
    if isinstance(segmentation, dict):
        annotation['segmentation'] = segmentation
    image = dict(id=1, file_name=file, width=SIZE[0], height=SIZE[1])
    categories = categories or [dict(id=1, name='car')]
    write(path, dict(images=[image], annotations=[annotation], categories=categories))
    return Source(path if path.parent.name != 'train' else path.parents[1])


def of_cvat(path, *shapes, meta=True):
    label = '<meta><job><labels><label><name>car</name></label></labels></job></meta>'
    image = f'<image name="1.jpg" width="{SIZE[0]}" height="{SIZE[1]}">{"".join(shapes)}</image>'
    save(path, f'<annotations>{label if meta else ""}{image}</annotations>'.encode())
    return Source(path)


def of_labelme(path, **shape):
    content = dict(imagePath='1.jpg', imageWidth=SIZE[0], imageHeight=SIZE[1])
    write(path, {**content, 'shapes': [{'label': 'car', **shape}]})
    return Source(path)


def of_label_studio(path, *results, **annotation):
    size = dict(original_width=SIZE[0], original_height=SIZE[1])
    done = dict(result=[{**size, **each} for each in results], **annotation)
    write(path, [dict(id=7, data=dict(image='s3://x/1.jpg'), annotations=[done])])
    return Source(path)


def of_supervisely(path, **thing):
    write(path / 'meta.json', dict(classes=[dict(title='car', color='#010203')]))
    size = dict(width=SIZE[0], height=SIZE[1])
    write(path / 'ds/ann/1.jpg.json', dict(size=size, objects=[dict(classTitle='car', **thing)]))
    return Source(path)


def test_coco_parts_of_an_object_add_up_and_crowds_are_ignored(tmp_path):
    overlapping = [BOX, [4, 2, 10, 2, 10, 6, 4, 6]]
    mask = drawn(coco.read(of_coco(tmp_path / 'x.json', overlapping)))
    assert (mask == 0).sum() == 8 * 4
    rle = dict(size=[10, 12], counts=[20, 100])
    mask = drawn(coco.read(of_coco(tmp_path / 'x.json', rle, iscrowd=1)))
    assert (mask[:, :2] == 9).all() and (mask[:, 2:] == 255).all()
    content = json.loads((tmp_path / 'x.json').read_text())
    content['images'][0]['date_captured'] = 0  # as CVAT writes it, whose masks are all "crowds"
    write(tmp_path / 'x.json', content)
    assert (drawn(coco.read(Source(tmp_path / 'x.json')))[:, 2:] == 0).all()


def test_coco_of_roboflow_is_several_files_and_a_category_that_groups(tmp_path):
    categories = [
        dict(id=0, name='cars-x2', supercategory='none'),
        dict(id=1, name='car', supercategory='cars-x2'),
    ]
    for folder in ('train', 'valid'):
        file = tmp_path / folder / '_annotations.coco.json'
        of_coco(file, categories=categories)
        save(file.parent / '1.jpg', b'')
    source = Source(tmp_path)
    assert require_reader(source) is coco
    annotations = coco.read(source)
    assert list(annotations.classes) == ['car']
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
def test_boxes_and_ellipses_of_cvat_turn_about_their_centre(tmp_path, shape, pixels):
    y, x = np.nonzero(drawn(cvat.read(of_cvat(tmp_path / 'x.xml', shape))) == 0)
    box = (x.min() + x.max() + 1) / 2, (y.min() + y.max() + 1) / 2, np.ptp(x) + 1, np.ptp(y) + 1
    assert box == pixels
    share = len(x) / (pixels[2] * pixels[3])
    assert share == pytest.approx(np.pi / 4, abs=0.06) if 'ellipse' in shape else share == 1


def test_labelme_circles_rectangles_and_what_is_ignored(tmp_path):
    source = of_labelme(tmp_path / '1.json', shape_type='circle', points=[[5, 5], [5, 8]])
    disc = drawn(labelme.read(source)) == 0
    assert disc.sum() == pytest.approx(np.pi * 9, abs=4) and disc[2:8, 5].all()
    source = of_labelme(tmp_path / '1.json', shape_type='rectangle', points=[[8, 6], [2, 2]])
    assert (drawn(labelme.read(source)) == 0).sum() == 24
    source = of_labelme(
        tmp_path / '1.json', label='__ignore__', points=np.reshape(BOX, (4, 2)).tolist()
    )
    annotations = labelme.read(source)
    assert (drawn(annotations) == 255).sum() == 24 and not annotations.classes


@pytest.mark.parametrize('listed', [True, False])
def test_labelme_spaces_around_a_label_do_not_count(tmp_path, listed):
    points = np.reshape(BOX, (4, 2)).tolist()
    of_labelme(tmp_path / '1.json', label=' car ', points=points)
    if listed:
        (tmp_path / 'labels.txt').write_text('car \n')
    annotations = labelme.read(Source(tmp_path))
    assert list(annotations.classes) == ['car'] and (drawn(annotations) == 0).sum() == 24


@pytest.mark.parametrize(
    ('kind', 'value', 'where'),
    [
        ('rectangle', dict(x=50, y=20, width=25, height=50), np.s_[2:7, 6:9]),
        # about its first corner, on the image as it is: percentages are not square
        ('rectangle', dict(x=50, y=20, width=25, height=50, rotation=90), np.s_[2:5, 1:6]),
        ('brush', dict(rle=brush(np.eye(10, 12, dtype=bool))), np.s_[range(10), range(10)]),
    ],
)
def test_shapes_of_label_studio(tmp_path, kind, value, where):
    value[f'{kind}labels'] = ['car']
    mask = drawn(label_studio.read(of_label_studio(tmp_path / 'x.json', dict(value=value)))) == 0
    expected = np.zeros_like(mask)
    expected[where] = True
    assert np.array_equal(mask, expected)


def test_a_label_of_label_studio_may_stand_in_a_result_of_its_own(tmp_path):
    points = [[0, 0], [50, 0], [50, 50], [0, 50]]
    drawing = dict(id='r', type='polygon', value=dict(points=points))
    label = dict(id='r', type='labels', value=dict(points=points, labels=['car']))
    other = dict(id='q', type='polygon', value=dict(points=points))
    choice = dict(id='c', type='choices', value=dict(choices=['good']))
    point = dict(id='k', type='keypointlabels', value=dict(x=1, y=2, keypointlabels=['car']))
    source = of_label_studio(tmp_path / 'x.json', drawing, label, other, choice, point)
    annotations = label_studio.read(source)
    (image,) = annotations.images
    assert len(image.shapes) == 1
    assert kinds(image) == ['polygon without a label', 'keypointlabels']
    both = dict(points=points, polygonlabels=['car', 'bus'])
    problem = only_problem(
        label_studio.read(of_label_studio(tmp_path / 'x.json', dict(value=both)))
    )
    assert 'result[0]: labels car, bus: expected one of them' in problem


def test_predictions_of_label_studio_are_no_annotations(tmp_path):
    prediction = dict(result=[dict(value=dict(points=[[0, 0]], polygonlabels=['car']))])
    tasks = [dict(data=dict(image='1.jpg'), predictions=[prediction])]
    write(tmp_path / 'x.json', tasks)
    source = Source(tmp_path)
    assert label_studio.is_mine(source)
    (image,) = label_studio.read(source).images
    assert (image.shapes, image.is_done, kinds(image)) == ([], False, ['prediction'])


def test_yolo_names_its_classes_in_a_list_or_a_file(tmp_path):
    save(tmp_path / 'data.yaml', b'names: [car, bus]\n')
    save(tmp_path / 'train/labels/1.txt', b'1 0 0 0.5 0 0.5 1 0 1\n\n')
    save(tmp_path / 'train/labels/2.txt', b'')
    source = Source(tmp_path)
    first, second = yolo.read(source).images
    assert (first.name, first.shapes[0].label) == ('train/images/1', 'bus')
    assert not second.shapes
    (tmp_path / 'data.yaml').rename(tmp_path / 'other.txt')
    save(tmp_path / 'classes.txt', b'car\nbus\n')  # of Label Studio
    assert list(yolo.read(Source(tmp_path)).classes) == ['car', 'bus']
    save(tmp_path / 'train/labels/2.txt', b'2 0 0 0.5 0 0.5 1 0 1\n')
    _, problem = yolo.read(Source(tmp_path)).images
    assert '2.txt: line 1: class 2: expected one of 0, 1' in str(problem)
    save(tmp_path / 'classes.txt', b'car\n\nbus\n')  # the line's number is the id
    *_, image = yolo.read(Source(tmp_path)).images
    assert image.shapes[0].label == 'bus'


def test_holes_of_supervisely_keep_their_rim(tmp_path):
    outer, hole = [[0, 0], [9, 0], [9, 8], [0, 8]], [[3, 3], [5, 3], [5, 5], [3, 5]]
    points = dict(exterior=outer, interior=[hole])
    source = of_supervisely(tmp_path, geometryType='polygon', points=points)
    mask = drawn(supervisely.read(source)) == 0
    assert mask.sum() == 90 - 9 and not mask[3:6, 3:6].any()
    points['exterior'] = [
        [0, 0],
        [9, 0],
        [9, 8.0],
        [0, 8.1],
    ]  # with fractions corners are no pixels
    mask = drawn(supervisely.read(of_supervisely(tmp_path, geometryType='polygon', points=points)))
    assert (mask == 0).sum() == 72 - 4


def test_a_palette_of_ids_is_told_from_one_of_colours(tmp_path):
    ids = np.zeros(SIZE[::-1], np.uint8)
    ids[2:6, 2:8], ids[0, 0] = 1, 255
    for colours, void in ((COLOURS['car'], (224, 224, 192)), ((9, 9, 9), (1, 1, 1))):
        picture = Image.fromarray(ids)
        picture.putpalette([0, 0, 0, *colours, *[0] * 759, *void])
        path = tmp_path / 'SegmentationClass/1.png'
        path.parent.mkdir(exist_ok=True)
        picture.save(path)
        save(tmp_path / 'labelmap.txt', b'background:0,0,0::\ncar:255,0,0::\n')
        mask = drawn(segmentation_mask.read(Source(tmp_path)))
        assert (mask == 0).sum() == 24 and mask[0, 0] == 255 and (mask == 9).sum() == 95


def nested(depth):
    return '[' * depth + ']' * depth


HUGE = 10**9


@pytest.mark.parametrize(
    ('make', 'message'),
    [
        (
            lambda p: of_coco(p / 'x.json', [[float('nan')] * 6]),
            'annotation 5: polygon: a point at nan',
        ),
        (lambda p: of_coco(p / 'x.json', [[0] * 2_000_000]), '1000000 points; expected at most'),
        (lambda p: of_coco(p / 'x.json', [[1, 2, 3]]), r'annotation 5: damaged \(ValueError'),
        (lambda p: of_coco(p / 'x.json', ['car']), r'annotation 5: damaged \(ValueError'),
        (
            lambda p: of_coco(p / 'x.json', dict(size=[5, 6], counts=[20, 10])),
            r'annotation 5: RLE: of 6×5 pixels; expected 12×10, the size of the image',
        ),
        (
            lambda p: of_coco(p / 'x.json', dict(size=[10, 12], counts=[HUGE])),
            'RLE: 1000000000 pixels; expected 12×10',
        ),
        (
            lambda p: of_coco(p / 'x.json', categories=[dict(id=2, name='car')]),
            r'damaged \(KeyError: 1\); expected an export as COCO',
        ),
        (
            lambda p: of_cvat(p / 'x.xml', '<box label="car" xtl="x"/>'),
            r'box car: damaged \(ValueE',
        ),
        (
            lambda p: of_cvat(p / 'x.xml', '<mask label="car" rle="1"/>'),
            r'mask car: damaged \(KeyE',
        ),
        (
            lambda p: of_labelme(p / '1.json', shape_type='mask', mask='%', points=[[0, 0]]),
            r'shapes\[0\]: (picture: no image|damaged)',
        ),
        (
            lambda p: of_label_studio(
                p / 'x.json', dict(value=dict(x=1, height=1, labels=['car']))
            ),
            r"result\[0\]: damaged \(KeyError: 'y'\)",
        ),
        (
            lambda p: of_supervisely(
                p, geometryType='bitmap', bitmap=dict(data=bomb(), origin=[0, 0])
            ),
            r'objects\[0\]: picture: no image',
        ),
        (
            lambda p: of_supervisely(
                p,
                geometryType='rectangle',
                points=dict(exterior=[[0, 0], [1e8, 1e8]]),
            ),
            'polygon: 100000001×100000001 pixels',
        ),
    ],
)
def test_what_is_damaged_in_an_image_is_told_in_a_line(tmp_path, make, message):
    source = make(tmp_path)
    problem = only_problem(require_reader(source).read(source))
    assert re.search(message, problem) and '\n' not in problem


def bomb():
    return base64.b64encode(zlib.compress(bytes(2**27), 1)).decode()


@pytest.mark.parametrize(
    ('name', 'text', 'message'),
    [
        ('x.json', '{"images": [', r'not JSON \(.*; expected an export of a tool'),
        ('x.json', nested(200_000), 'not JSON'),
        ('x.json', '[]', 'no known format; expected COCO pan'),
        (
            'x.json',
            json.dumps(dict(images=[], annotations=[{}], categories=[])),
            r'damaged \(KeyErr',
        ),
        ('x.xml', '<annotations><image', 'cannot be read'),
        ('x.xml', '<!DOCTYPE x [<!ENTITY a "b">]><annotations/>', 'XML with a DTD; expected'),
        ('x.xml', '<annotations><track/></annotations>', 'tracks of a video; expected'),
        ('x.zip', 'PK\x05\x06' + '\0' * 10, '(no known format|cannot be read)'),
    ],
)
def test_a_damaged_file_is_told_in_a_line(tmp_path, name, text, message):
    save(tmp_path / name, text.encode())
    with pytest.raises(UserError, match=message) as raised:
        source = Source(tmp_path / name)
        list(require_reader(source).read(source).images)
    assert '\n' not in str(raised.value) and name in str(raised.value)


def test_a_zip_bomb_is_not_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / 'x.zip', 'w', zipfile.ZIP_DEFLATED) as file:
        file.writestr('annotations.xml', bytes(2**26 + 1))
    with pytest.raises(
        UserError, match=r'x\.zip: annotations\.xml: 67108865 bytes packed into \d+'
    ):
        require_reader(Source(tmp_path / 'x.zip'))
    data = (tmp_path / 'x.zip').read_bytes()
    save(tmp_path / 'cut.zip', data[:50] + b'\0' * 50 + data[100:])
    with pytest.raises(UserError, match=r'cut\.zip'):
        require_reader(Source(tmp_path / 'cut.zip'))


def test_a_task_of_label_studio_that_nobody_finished_is_told_from_an_empty_one(tmp_path):
    def image(tasks):
        write(tmp_path / 'x.json', tasks)
        (image,) = label_studio.read(Source(tmp_path / 'x.json')).images
        return image.is_done, kinds(image)

    task, empty = dict(id=7, data=dict(image='1.jpg')), dict(result=[])
    assert image([dict(task, annotations=[])]) == (False, [])
    assert image([dict(task, annotations=[dict(empty, was_cancelled=True)])]) == (False, [])
    assert image([dict(task, annotations=[empty, dict(empty, updated_at='2')])]) == (True, [])


@pytest.mark.parametrize(
    ('address', 'name'),
    [
        ('/data/local-files/?d=photos/50%25.jpg', 'photos/50%.jpg'),
        ('/data/local-files/?d=photos/50%2525.jpg', 'photos/50%25.jpg'),
        ('s3://photos/50%25.jpg', '50%.jpg'),
    ],
)
def test_addresses_of_label_studio_are_decoded_once(tmp_path, address, name):
    write(tmp_path / 'x.json', [dict(id=7, data=dict(image=address), annotations=[])])
    (image,) = label_studio.read(Source(tmp_path / 'x.json')).images
    assert image.name == name


def test_the_ground_truth_of_label_studio_counts_before_later_annotations(tmp_path):
    size = dict(original_width=SIZE[0], original_height=SIZE[1])

    def annotation(label, **more):
        points = [[0, 0], [50, 0], [50, 50]]
        return dict(result=[dict(size, value=dict(points=points, polygonlabels=[label]))], **more)

    truth = annotation('car', updated_at='2026-01-01', ground_truth=True)
    later = annotation('bus', updated_at='2026-01-02', ground_truth=False)
    write(tmp_path / 'x.json', [dict(data=dict(image='1.jpg'), annotations=[truth, later])])
    (image,) = label_studio.read(Source(tmp_path / 'x.json')).images
    assert [shape.label for shape in image.shapes] == ['car']


def test_coco_categories_need_no_supercategory(tmp_path):
    categories = [dict(id=2, name='vehicle'), dict(id=1, name='car', supercategory='vehicle')]
    assert list(coco.read(of_coco(tmp_path / 'x.json', categories=categories)).classes) == ['car']


def test_yolo_classes_may_lie_beside_the_labels(tmp_path):
    save(tmp_path / 'labels/classes.txt', b'car\nbus\n')
    save(tmp_path / 'labels/1.txt', b'1 0 0 0.5 0 0.5 1 0 1\n')
    (image,) = yolo.read(Source(tmp_path)).images
    assert image.shapes[0].label == 'bus'
