import pytest
from exports import save

from mmseg_cct.annotations.readers import require_reader, yolo
from mmseg_cct.annotations.source import Source
from mmseg_cct.errors import UserError


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


def test_yolo_classes_may_lie_beside_the_labels(tmp_path):
    save(tmp_path / 'labels/classes.txt', b'car\nbus\n')
    save(tmp_path / 'labels/1.txt', b'1 0 0 0.5 0 0.5 1 0 1\n')
    (image,) = yolo.read(Source(tmp_path)).images
    assert image.shapes[0].label == 'bus'


def test_lists_that_name_each_other_are_no_classes(tmp_path):
    lines = [f'{new}: &{new} [{",".join(["*" + old] * 9)}]' for old, new in zip('abcd', 'bcde')]
    text = '\n'.join(['a: &a [x,x]', *lines, 'names: [*e]', ''])
    save(tmp_path / 'data.yaml', text.encode())
    save(tmp_path / 'labels/1.txt', b'0 0 0 1 0 1 1\n')
    source = Source(tmp_path)
    with pytest.raises(UserError, match=r'data\.yaml: damaged \(TypeError: a class is a list\)'):
        require_reader(source).read(source)
