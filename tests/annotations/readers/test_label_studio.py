import base64

import numpy as np
import pytest
from exports import brush, png, write
from formats import SIZE, drawn, of_label_studio

from mmseg_cct.annotations.readers import label_studio
from mmseg_cct.annotations.shapes import Note
from mmseg_cct.annotations.source import Source
from mmseg_cct.errors import UserError

POINTS = [[0, 0], [50, 0], [50, 50], [0, 50]]
MASK = np.eye(10, 12, dtype=bool)
PIXELS = np.stack([MASK * 0, MASK * 255], -1).astype(np.uint8)
DATA_URL = f'data:image/png;base64,{base64.b64encode(png(PIXELS)).decode()}'


def read(root, *results, **options):
    (image,) = label_studio.read(of_label_studio(root, *results, **options)).images
    return image


@pytest.mark.parametrize(
    ('shape_type', 'value', 'where'),
    [
        ('rectangle', dict(x=50, y=20, width=25, height=50), np.s_[2:7, 6:9]),
        # about its first corner, on the image as it is: percentages are not square
        ('rectangle', dict(x=50, y=20, width=25, height=50, rotation=90), np.s_[2:5, 1:6]),
        ('ellipse', dict(x=50, y=50, radiusX=25, radiusY=10), np.s_[4:6, 3:9]),
        ('brush', dict(rle=brush(MASK)), np.s_[range(10), range(10)]),
        ('bitmask', dict(imageDataURL=DATA_URL), np.s_[range(10), range(10)]),
    ],
)
def test_a_shape_with_a_label_is_a_region_and_else_ignored_where_it_lies(
    tmp_path, shape_type, value, where
):
    expected = np.zeros(SIZE[::-1], bool)
    expected[where] = True
    labelled = dict(type=f'{shape_type}labels', value={**value, f'{shape_type}labels': ['car']})
    mask = drawn(label_studio.read(of_label_studio(tmp_path, labelled))) == 0
    assert np.array_equal(mask, expected)
    y, x = np.nonzero(expected)
    extent = [[x.min(), y.min()], [x.max() + 1, y.max() + 1]]
    (part,) = read(tmp_path, dict(type=shape_type, value=value)).parts
    assert (part.left_out, part.extent.tolist()) == (f'{shape_type} without a label', extent)
    (part,) = read(tmp_path, dict(labelled, value={**value, 'labels': ['car', 'bus']})).parts
    assert (part.left_out, part.extent.tolist()) == (f'{shape_type} with labels bus, car', extent)


def test_a_label_may_stand_in_a_result_of_its_own(tmp_path):
    drawing = dict(id='r', type='polygon', value=dict(points=POINTS))
    label = dict(id='r', type='labels', value=dict(points=POINTS, labels=['car']))
    choice = dict(id='r', type='choices', value=dict(points=POINTS, choices=['good']))
    relation = dict(type='relation', from_id='r', to_id='k')
    point = dict(id='k', type='keypointlabels', value=dict(x=50, y=20, keypointlabels=['car']))
    shape, keypoint = read(tmp_path, drawing, label, choice, relation, point).parts
    assert shape.label == 'car' and keypoint.extent.tolist() == [[6, 2], [6, 2]]


def test_an_annotation_that_nobody_finished_is_told_from_an_empty_one(tmp_path):
    empty = dict(result=[])
    size = dict(original_width=SIZE[0], original_height=SIZE[1])
    value = dict(points=POINTS, polygonlabels=['car'])
    drawn = dict(result=[dict(size, type='polygonlabels', value=value)])
    truth, rival_note = dict(drawn, ground_truth=True), ['other annotations of a task, not drawn']
    for annotations, expected in (
        ([], (False, [])),
        ([dict(empty, was_cancelled=True)], (False, [])),
        ([empty, dict(empty, updated_at='2')], (True, [])),
        ([drawn, empty], (False, rival_note)),
        ([empty, drawn], (True, ['shape'])),
        ([dict(truth, updated_at='1'), dict(empty, updated_at='2')], (True, ['shape'])),
    ):
        task = dict(id=7, data=dict(image='1.jpg'), annotations=annotations, predictions=[drawn])
        write(tmp_path / 'x.json', [task])
        (image,) = label_studio.read(Source(tmp_path / 'x.json')).images
        kinds = [part.text if isinstance(part, Note) else 'shape' for part in image.parts]
        assert (image.is_done, kinds) == expected


@pytest.mark.parametrize(
    ('data', 'name'),
    [
        (dict(image='/data/local-files/?d=photos/50%25.jpg'), 'photos/50%.jpg'),
        (dict(image='/data/local-files/?d=photos/50%2525.jpg'), 'photos/50%25.jpg'),
        (dict(image='s3://photos/50%25.jpg', text='x'), '50%.jpg'),
        (dict(rgb='1.jpg', depth='2.jpg'), '2.jpg'),
    ],
)
def test_a_task_shows_one_image(tmp_path, data, name):
    region = dict(to_name='depth', value=dict(points=POINTS, polygonlabels=['car']))
    assert read(tmp_path, region, data=data).name == name
    for several in (dict(pages=['1.jpg', '2.jpg']), dict(a='1.jpg', b='2.jpg'), dict(a='text')):
        assert isinstance(read(tmp_path, region, data=several), UserError)
