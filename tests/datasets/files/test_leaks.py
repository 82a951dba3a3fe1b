import os
import shutil

import pytest

from mmseg_cct.datasets.files import leaks
from mmseg_cct.datasets.files.leaks import common_images, describe_leaks


@pytest.fixture
def files(tmp_path):
    """Four files that differ in their last byte alone."""
    paths = [tmp_path / f'{index}.png' for index in range(4)]
    for index, path in enumerate(paths):
        path.write_bytes(bytes(9000) + bytes([index]))
    return paths


def twin(tmp_path, kind, file):
    other = tmp_path / 'other.png'
    {'link': os.symlink, 'hard link': os.link, 'copy': shutil.copy}[kind](file, other)
    return other


@pytest.mark.parametrize('kind', ['link', 'hard link', 'copy'])
def test_one_image_under_two_names(kind, files, tmp_path):
    other = twin(tmp_path, kind, files[1])
    assert common_images(files, [other]) == [(files[1], other)]


def test_the_same_path_however_it_is_written(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'x').mkdir()
    found = common_images([*files, 's3://a/b.png'], ['x/../1.png', 's3://a/b.png', 's3://a/c.png'])
    assert found == [(files[1], 'x/../1.png'), ('s3://a/b.png', 's3://a/b.png')]


def test_files_of_one_size_are_no_copies_and_are_read_only_where_they_may_be(files, monkeypatch):
    files[3].write_bytes(bytes([9]) * 9001)
    read = []
    monkeypatch.setattr(leaks, '_all_bytes', lambda path: read.append(path) or path.read_bytes())
    assert common_images(files[:1], [*files[1:], 'gone.png']) == []
    assert sorted(read) == files[:3]


def test_a_line_for_each_set_that_has_a_common_image(files, tmp_path):
    other = twin(tmp_path, 'copy', files[0])
    sets = {'labelled': files[:2], 'validated on': [other], 'unlabelled': iter(files[1:])}
    expected = 'expected two sets without a common image'
    assert list(describe_leaks(sets)) == [
        f'1 images are both labelled and validated on, the first is {other} (the same as '
        f'{files[0]}); {expected}',
        f'1 images are both labelled and unlabelled, the first is {files[1]}; {expected}',
    ]
