"""A set that cannot be built is explained, and an image that a pipeline cannot take is named."""

import cv2
import numpy as np
import pytest
from mmengine.dataset import ConcatDataset
from mmseg.registry import DATASETS

from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.datasets.failures import explain_failed_build, name_images_in_errors
from mmseg_cct.errors import UserError


def make_set(tree):
    steps = tree.config('unlabeled')['pipeline']
    resize = dict(type='Resize', scale=(24, 16), keep_ratio=True)
    dataset = DATASETS.build(tree.config('unlabeled', pipeline=[steps[0], resize, steps[-1]]))
    return ConcatDataset([dataset])


def test_a_library_s_error_names_the_image(tree):
    cv2.imwrite(str(tree.image('u1')), np.zeros((3, 2000, 3), np.uint8))  # no row after Resize
    dataset, plain = make_set(tree), make_set(tree)
    name_images_in_errors(dataset, 'val_dataloader.dataset')
    np.testing.assert_array_equal(dataset[0]['inputs'], plain[0]['inputs'])
    expected = r'u1\.jpg: val_dataloader\.dataset\.pipeline does not run on it \(error: OpenCV'
    with pytest.raises(UserError, match=expected):
        dataset[1]


def test_a_bug_of_a_transform_keeps_its_traceback(tree):
    dataset = make_set(tree)
    dataset.datasets[0].pipeline.transforms.append(lambda results: results['mine'])
    name_images_in_errors(dataset, 'val_dataloader.dataset')
    with pytest.raises(KeyError, match='mine'):
        dataset[0]


@pytest.mark.parametrize('serialize_data', [True, False])
@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (dict(data_prefix=dict(img_path='nowhere')), r'.*/nowhere: no such folder; expected'),
        (dict(img_suffix='.tif'), r'.*images: no image in this folder; .* end in \.tif'),
        (dict(ann_file='empty.txt'), r'.*empty\.txt: the list is empty; expected'),
        (dict(type='CityscapesDataset', metainfo=None), 'the set is empty; expected at least one'),
    ],
)
def test_a_set_without_images(tree, serialize_data, options, message):
    (tree.root / 'empty.txt').write_text('')
    options = dict(ann_file='', serialize_data=serialize_data) | options
    with pytest.raises(UserError, match=f'^labeled: {message}'):
        SemiSegDataset(tree.config('labeled', **options))


def test_what_is_there_explains_nothing(tree):
    explain_failed_build(tree.config('labeled'), 'labeled')
    explain_failed_build(None, 'labeled')
