import cv2
import numpy as np
import pytest
from mmseg.registry import DATASETS

from mmseg_cct.datasets import PairDraw, SemiSegDataset
from mmseg_cct.preflight.files import check_pairs

PIPELINE = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
]


@pytest.fixture
def root(tmp_path):
    for folder in ('images', 'masks'):
        (tmp_path / folder).mkdir()
    cv2.imwrite(str(tmp_path / 'images' / 'a.jpg'), np.zeros((6, 12, 3), np.uint8))
    ids = np.arange(12, dtype=np.uint8)[None].repeat(6, 0)
    cv2.imwrite(str(tmp_path / 'masks' / 'a.png'), ids)
    return tmp_path


def _config(root, **kwargs):
    config = dict(
        type='CamVidDataset',
        data_root=str(root),
        data_prefix=dict(img_path='images', seg_map_path='masks'),
        pipeline=PIPELINE,
    )
    return {**config, **kwargs}


def test_void_is_ignored(root):
    dataset = DATASETS.build(_config(root))
    mask = dataset[0]['data_samples'].gt_sem_seg.data
    assert mask[0, 0].tolist() == [*range(11), 255]


def test_some_of_the_classes(root):
    dataset = DATASETS.build(_config(root, metainfo=dict(classes=('Car', 'Road'))))
    mask = dataset[0]['data_samples'].gt_sem_seg.data
    assert mask[0, 0].tolist() == [1 if i == 3 else 0 if i == 8 else 255 for i in range(12)]
    assert dataset.metainfo['palette'] == [[64, 0, 128], [128, 64, 128]]


def test_checks_know_that_void_is_allowed(root):
    check_pairs(SemiSegDataset(_config(root)))


def test_real_images(camvid_root, project_root):
    lists = project_root / 'configs' / '_base_' / 'splits' / 'camvid'
    common = _config(
        camvid_root,
        data_prefix=dict(img_path='images/train', seg_map_path='masks/train'),
    )
    dataset = SemiSegDataset(
        dict(common, ann_file=str(lists / '5_labeled.txt')),
        dict(
            common,
            ann_file=str(lists / '5_unlabeled.txt'),
            pipeline=[PIPELINE[0], PIPELINE[2]],
            indices=3,
        ),
    )
    assert (len(dataset.labeled), len(dataset)) == (5, 8)
    item = dataset[PairDraw(4, 2, 0, 0)]
    assert item['inputs']['labeled'].shape == item['inputs']['unlabeled'].shape == (3, 360, 480)
    ids = set(item['data_samples']['labeled'].gt_sem_seg.data.unique().tolist())
    assert ids <= {*range(11), 255} and len(ids) > 5
