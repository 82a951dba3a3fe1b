"""A set that cannot be built is explained by its list and its folder."""

import pytest

from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.datasets.failed_build import explain_failed_build
from mmseg_cct.errors import UserError


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
