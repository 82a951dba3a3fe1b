import numpy as np
import pytest
from exports import brush, write
from formats import SIZE, drawn, of_label_studio

from mmseg_cct.annotations.readers import label_studio
from mmseg_cct.annotations.source import Source


def read(root, *results, **options):
    (image,) = label_studio.read(of_label_studio(root, *results, **options)).images
    return image


def read_tasks(root, *tasks):
    write(root / 'x.json', tasks)
    (image,) = label_studio.read(Source(root / 'x.json')).images
    return image


def kinds(image):
    return [part.kind for part in image.left_out]


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
    mask = drawn(label_studio.read(of_label_studio(tmp_path, dict(value=value)))) == 0
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
    image = read(tmp_path, drawing, label, other, choice, point)
    assert len(image.shapes) == 1
    assert kinds(image) == ['polygon without a label', 'keypointlabels']
    mask = np.zeros(SIZE[::-1], bool)
    mask[2:4, 5:8] = True
    image = read(tmp_path, dict(id='b', type='brush', value=dict(rle=brush(mask))))
    assert image.left_out[0].extent.tolist() == [[5, 2], [8, 4]]
    image = read(tmp_path, dict(value=dict(points=points, polygonlabels=['car', 'bus'])))
    assert 'result[0]: labels car, bus: expected one of them' in image.left_out[0].fault


def test_predictions_of_label_studio_are_no_annotations(tmp_path):
    prediction = dict(result=[dict(value=dict(points=[[0, 0]], polygonlabels=['car']))])
    image = read_tasks(tmp_path, dict(data=dict(image='1.jpg'), predictions=[prediction]))
    assert (image.shapes, image.is_done, kinds(image)) == ([], False, ['prediction'])
    assert label_studio.is_mine(Source(tmp_path))


def test_a_task_of_label_studio_that_nobody_finished_is_told_from_an_empty_one(tmp_path):
    empty = dict(result=[])
    drawn = dict(result=[dict(value=dict(points=[[0, 0]], polygonlabels=['car']))])
    for annotations, expected in (
        ([], (False, [])),
        ([dict(empty, was_cancelled=True)], (False, [])),
        ([empty, dict(empty, updated_at='2')], (True, [])),
        ([drawn, empty], (True, ['other annotation'])),
    ):
        task = dict(id=7, data=dict(image='1.jpg'), annotations=annotations)
        image = read_tasks(tmp_path, task)
        assert (image.is_done, kinds(image)) == expected


@pytest.mark.parametrize(
    ('address', 'name'),
    [
        ('/data/local-files/?d=photos/50%25.jpg', 'photos/50%.jpg'),
        ('/data/local-files/?d=photos/50%2525.jpg', 'photos/50%25.jpg'),
        ('s3://photos/50%25.jpg', '50%.jpg'),
    ],
)
def test_addresses_of_label_studio_are_decoded_once(tmp_path, address, name):
    assert read(tmp_path, data=dict(image=address)).name == name


def test_the_ground_truth_of_label_studio_counts_before_later_annotations(tmp_path):
    def annotation(label, **more):
        size = dict(original_width=SIZE[0], original_height=SIZE[1])
        value = dict(points=[[0, 0], [50, 0], [50, 50]], polygonlabels=[label])
        return dict(result=[dict(size, value=value)], **more)

    truth = annotation('car', updated_at='2026-01-01', ground_truth=True)
    later = annotation('bus', updated_at='2026-01-02', ground_truth=False)
    image = read_tasks(tmp_path, dict(data=dict(image='1.jpg'), annotations=[truth, later]))
    assert [shape.label for shape in image.shapes] == ['car']
