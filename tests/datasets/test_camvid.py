import numpy as np
import pytest
from folders import save
from mmseg.registry import DATASETS

from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.preflight.files import check_pairs

LOAD, PACK = dict(type='LoadImageFromFile'), dict(type='PackSegInputs')
PIPELINE = [LOAD, dict(type='LoadAnnotations'), PACK]


@pytest.fixture
def root(tmp_path):
    save(tmp_path / 'images/a.jpg', np.zeros((6, 12, 3), np.uint8))
    save(tmp_path / 'masks/a.png', np.arange(12, dtype=np.uint8)[None].repeat(6, 0))
    return tmp_path


def _config(root, **kwargs):
    prefix = dict(img_path='images', seg_map_path='masks')
    config = dict(type='CamVidDataset', data_root=str(root), data_prefix=prefix)
    return {**config, 'pipeline': PIPELINE, **kwargs}


SOME = dict(metainfo=dict(classes=('Car', 'Road')))


@pytest.mark.parametrize(
    ('options', 'expected', 'colour'),
    [
        ({}, [*range(11), 255], [128, 128, 128]),
        (SOME, [255, 255, 255, 1, *[255] * 4, 0, 255, 255, 255], [64, 0, 128]),
    ],
)
def test_void_and_other_classes_are_ignored(root, options, expected, colour):
    dataset = DATASETS.build(_config(root, **options))
    assert dataset[0]['data_samples'].gt_sem_seg.data[0, 0].tolist() == expected
    assert dataset.metainfo['palette'][0] == colour
    check_pairs(SemiSegDataset(dataset))  # void is no unknown id
