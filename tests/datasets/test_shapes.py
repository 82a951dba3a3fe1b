"""Drawn scenes: a pure function of their number, in disjoint sets."""

import mmcv
import numpy as np
import pytest
from mmengine import fileio
from mmengine.config import Config
from mmseg.registry import DATASETS

from mmseg_cct.datasets import DrawShapesScene, ShapesDataset
from mmseg_cct.datasets.shapes_scene import _draw_scene as draw_again
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


def test_augmentation_never_reaches_the_kept_scene():
    changes = [dict(type='PhotoMetricDistortion'), dict(type='RandomFlip', prob=1.0)]
    pipeline = [PIPELINE[0], *changes, PIPELINE[1]]
    dataset = ShapesDataset(start=0, count=1, size=32, pipeline=pipeline)
    kept = [part.copy() for part in draw_scene(0, 0, 32)]
    dataset[0]['inputs'].zero_()
    for part, before in zip(draw_scene(0, 0, 32), kept):
        np.testing.assert_array_equal(part, before)
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


def test_a_scene_depends_on_seed_number_and_size_alone():
    first = draw_again(3, 5, 48)
    draw_again(3, 6, 48)
    np.random.seed(2)
    for kept, again in zip(first, draw_again(3, 5, 48)):
        np.testing.assert_array_equal(kept, again)
    for other in [(4, 5, 48), (3, 6, 48)]:
        assert (draw_again(*other)[0] != first[0]).mean() > 0.5
