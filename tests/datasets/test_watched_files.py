"""What a run says of files that change while it reads them."""

import time

import numpy as np
import pytest
from PIL import Image

from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.files import build_evaluation_set


@pytest.fixture
def sets(tree, monkeypatch):
    """The images of a training and of a test that began long ago."""
    monkeypatch.setattr(time, 'time', lambda: 0.0)
    pairs = SemiSegDataset(tree.config('labeled'), tree.config('unlabeled'))
    return pairs, build_evaluation_set(tree.config('labeled'), 'test_dataloader.dataset')


def write(path, shape=(16, 24), value=0):
    Image.fromarray(np.full(shape, value, np.uint8)).save(path)


def cut(path):
    path.write_bytes(path.read_bytes()[:300])


@pytest.mark.parametrize(
    ('spoil', 'part'),
    [
        (lambda tree: write(tree.mask('l1'), value=77), 'mask'),
        (lambda tree: write(tree.mask('l1'), shape=(16, 24, 3)), 'mask'),
        (lambda tree: write(tree.mask('l1'), shape=(24, 16)), 'mask'),
        (lambda tree: cut(tree.image('l1')), 'image'),
        (lambda tree: tree.image('l1').unlink(), 'image'),
    ],
)
def test_a_file_that_was_spoilt_is_named(tree, sets, spoil, part):
    pairs, tested = sets
    names = [info['img_path'].rpartition('/')[2] for info in map(tested.get_data_info, range(2))]
    index = next(number for number, name in enumerate(names) if name.startswith('l1'))
    assert pairs[index] and tested[index]
    spoil(tree)
    for dataset in (pairs, tested):
        with pytest.raises(UserError) as caught:
            dataset[index]
        assert str(caught.value).startswith(str(getattr(tree, part)('l1')))


def test_files_that_did_not_change_are_read_once(tree, monkeypatch):
    monkeypatch.setattr(time, 'time', lambda: 1e12)
    pairs = SemiSegDataset(tree.config('labeled'))
    monkeypatch.setattr('mmseg_cct.datasets.watched_files.image_size', None)
    assert pairs[0]
