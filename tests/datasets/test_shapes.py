"""Drawn scenes: a pure function of their number, every class in a few of them, disjoint parts."""

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmseg.registry import DATASETS

from mmseg_cct.datasets import SemiSegDataset, ShapesDataset
from mmseg_cct.datasets.samplers import PairDraw
from mmseg_cct.datasets.shapes import DrawShapesScene, draw_scene
from mmseg_cct.errors import UserError

PIPELINE = [dict(type='DrawShapesScene'), dict(type='PackSegInputs')]
UNLABELED = [dict(type='DrawShapesScene', with_seg_map=False), dict(type='PackSegInputs')]
CLASSES = ShapesDataset.METAINFO['classes']


def draw_again(*scene):
    """The scene drawn anew, not the one that is kept."""
    return draw_scene.__wrapped__(*scene)


def test_a_scene_depends_on_seed_number_and_size_alone():
    np.random.seed(1)
    image, seg_map = draw_again(3, 5, 48)
    draw_again(3, 6, 48)
    np.random.seed(2)
    for first, again in zip((image, seg_map), draw_again(3, 5, 48)):
        np.testing.assert_array_equal(first, again)
    for other in [(4, 5, 48), (3, 6, 48)]:
        assert (draw_again(*other)[0] != image).mean() > 0.5


def test_a_scene_has_its_size_and_known_classes():
    image, seg_map = draw_again(0, 0, 40)
    assert image.shape == (40, 40, 3) and image.dtype == np.uint8
    assert seg_map.shape == (40, 40) and seg_map.dtype == np.uint8
    assert seg_map.max() < len(CLASSES)


def test_drawing_leaves_numpys_generator_alone():
    before = np.random.get_state()[1].copy()
    draw_again(0, 1, 32)
    np.testing.assert_array_equal(before, np.random.get_state()[1])


@pytest.mark.parametrize('start', [0, 17])
def test_a_dozen_scenes_show_every_class(start):
    seg_maps = [draw_scene(0, number, 64)[1] for number in range(start, start + 12)]
    assert set(np.unique(seg_maps)) == set(range(len(CLASSES)))


def test_an_object_differs_from_its_ground():
    """The mask is where the object is: the strongest edges lie along its border."""
    inside, border = [], []
    for number in range(20):
        image, seg_map = draw_scene(0, number, 64)
        steps = np.abs(np.diff(image.astype(float), axis=1)).sum(-1)
        is_border = np.diff(seg_map.astype(int), axis=1) != 0
        border.append(steps[is_border].mean())
        inside.append(steps[~is_border].mean())
    assert np.mean(border) > 1.5 * np.mean(inside)


def test_the_set_lists_its_range_and_draws_it():
    dataset = ShapesDataset(start=4, count=3, seed=2, size=32, pipeline=PIPELINE)
    assert len(dataset) == 3
    sample = dataset[1]
    image, seg_map = draw_again(2, 5, 32)
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


def test_an_unlabelled_scene_carries_no_mask():
    results = DrawShapesScene(with_seg_map=False)(dict(scene=(0, 0, 32), seg_fields=[]))
    assert 'gt_seg_map' not in results and results['seg_fields'] == []
    assert repr(DrawShapesScene(with_seg_map=False)) == 'DrawShapesScene(with_seg_map=False)'


def test_pairs_pass_the_check_of_data():
    pairs = SemiSegDataset(
        labeled=dict(type='ShapesDataset', start=0, count=2, size=32, pipeline=PIPELINE),
        unlabeled=dict(type='ShapesDataset', start=2, count=4, size=32, pipeline=UNLABELED),
    )
    pair = pairs[PairDraw(1, 3, 0, 0)]
    assert 'gt_sem_seg' in pair['data_samples']['labeled']
    assert 'gt_sem_seg' not in pair['data_samples']['unlabeled']
    expected = torch.from_numpy(draw_scene(0, 5, 32)[0].copy()).permute(2, 0, 1)
    assert torch.equal(pair['inputs']['unlabeled'], expected)


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


@pytest.mark.parametrize(
    ('wrong', 'message'),
    [
        (dict(count=0), 'count=0; expected at least one scene'),
        (dict(start=-1), 'start=-1, seed=0; expected 0 or more'),
        (dict(seed=-2), 'start=0, seed=-2; expected 0 or more'),
        (dict(size=31), 'size=31; expected 32 pixels or more'),
    ],
)
def test_wrong_arguments_are_named(wrong, message):
    with pytest.raises(UserError, match=message):
        ShapesDataset(**{'start': 0, 'count': 1, **wrong})
