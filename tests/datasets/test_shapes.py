import mmcv
import numpy as np
import pytest
from mmengine import fileio
from mmengine.config import Config
from mmseg.registry import DATASETS

from mmseg_cct.datasets import DrawShapesScene, ShapesDataset
from mmseg_cct.datasets.shapes_scene import draw_scene

PIPELINE = [dict(type='DrawShapesScene'), dict(type='PackSegInputs')]
CLASSES = ShapesDataset.METAINFO['classes']


def test_the_set_lists_its_range_and_draws_it():
    dataset = ShapesDataset(start=4, count=3, seed=2, size=32, pipeline=PIPELINE)
    assert len(dataset) == 3
    sample = dataset[1]
    image, seg_map = draw_scene(2, 5, 32)
    np.testing.assert_array_equal(sample['inputs'].permute(1, 2, 0), image)
    np.testing.assert_array_equal(sample['data_samples'].gt_sem_seg.data[0], seg_map)
    assert sample['data_samples'].ori_shape == sample['data_samples'].img_shape == (32, 32)
    assert dataset.metainfo['classes'] == CLASSES
    assert len(dataset.metainfo['palette']) == len(CLASSES)


def test_no_augmentation_can_write_into_a_kept_scene():
    for part in draw_scene(0, 0, 32):
        with pytest.raises(ValueError, match='read-only'):
            part[:] = 0


def test_the_demos_parts_have_no_scene_in_common(project_root):
    config = Config.fromfile(project_root / 'configs/_base_/datasets/shapes.py')
    train = config.train_dataloader.dataset
    evaluated = [config.val_dataloader.dataset, config.test_dataloader.dataset]
    parts = [train.labeled, train.unlabeled, *evaluated]
    scenes = [
        dataset.get_data_info(index)['scene']
        for dataset in map(DATASETS.build, parts)
        for index in range(len(dataset))
    ]
    assert len(set(scenes)) == len(scenes)


def test_the_scene_can_be_read_again_by_its_address():
    results = DrawShapesScene()(dict(scene=(3, 12, 48), seg_fields=[]))
    assert results['img_path'] == 'shapes://3/48/000012.png'
    again = mmcv.imfrombytes(fileio.get(results['img_path']))
    assert np.array_equal(again, results['img'])
