import os
import shutil

import pytest

from mmseg_cct.datasets.files.leaks import common_images


@pytest.fixture
def files(tmp_path):
    """Four files that differ in their last byte alone."""
    paths = [tmp_path / f'{index}.png' for index in range(4)]
    for index, path in enumerate(paths):
        path.write_bytes(bytes(9000) + bytes([index]))
    return paths


@pytest.mark.parametrize('make', [os.symlink, os.link, shutil.copy])
def test_one_image_under_two_names(make, files, tmp_path):
    twin = tmp_path / 'other.png'
    make(files[1], twin)
    assert common_images(files, [twin]) == [(files[1], twin)]


def test_the_same_path_however_it_is_written(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'x').mkdir()
    pairs = common_images([*files, 's3://a/b.png'], ['x/../1.png', 's3://a/b.png', 's3://a/c.png'])
    assert pairs == [(files[1], 'x/../1.png'), ('s3://a/b.png', 's3://a/b.png')]


def test_files_of_one_size_are_no_copies(files):
    files[3].write_bytes(bytes([9]) * 9001)
    assert common_images(files[:1], [*files[1:], 'gone.png']) == []
