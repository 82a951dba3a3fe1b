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


def test_missing_folder(tree):
    config = tree.config('labeled', ann_file='', data_prefix=dict(img_path='nowhere'))
    with pytest.raises(UserError, match=r'labeled: .*/nowhere: no such folder; expected'):
        SemiSegDataset(config)


@pytest.mark.parametrize('serialize_data', [True, False])
def test_folder_without_images(tree, serialize_data):
    options = dict(ann_file='', img_suffix='.tif', serialize_data=serialize_data)
    config = tree.config('labeled', **options)
    with pytest.raises(UserError, match=r'images: no image in this folder; .* end in \.tif'):
        SemiSegDataset(config)


def test_what_is_there_explains_nothing(tree):
    explain_failed_build(tree.config('labeled'), 'labeled')
    explain_failed_build(None, 'labeled')
