import numpy as np
import pytest
from exports import brush, write
from formats import SIZE, drawn, of_label_studio, only_problem

from mmseg_cct.annotations.readers import label_studio
from mmseg_cct.annotations.source import Source


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
    mask = np.zeros(SIZE[::-1], bool)
    mask[2:4, 5:8] = True
    bare = dict(id='b', type='brush', value=dict(rle=brush(mask)))
    (image,) = label_studio.read(of_label_studio(tmp_path / 'x.json', bare)).images
    assert image.left_out[0].extent.tolist() == [[5, 2], [8, 4]]
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


def test_a_task_of_label_studio_that_nobody_finished_is_told_from_an_empty_one(tmp_path):
    def image(tasks):
        write(tmp_path / 'x.json', tasks)
        (image,) = label_studio.read(Source(tmp_path / 'x.json')).images
        return image.is_done, kinds(image)

    task, empty = dict(id=7, data=dict(image='1.jpg')), dict(result=[])
    assert image([dict(task, annotations=[])]) == (False, [])
    assert image([dict(task, annotations=[dict(empty, was_cancelled=True)])]) == (False, [])
    assert image([dict(task, annotations=[empty, dict(empty, updated_at='2')])]) == (True, [])
    drawn = dict(result=[dict(value=dict(points=[[0, 0]], polygonlabels=['car']))])
    assert image([dict(task, annotations=[drawn, empty])]) == (True, ['other annotation'])


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
