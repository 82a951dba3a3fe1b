import shutil
from itertools import islice

import cv2
import numpy as np
import pytest
import torch
from mmengine.dataset import ConcatDataset, pseudo_collate
from mmseg.registry import DATASETS
from trees import Tree
from workers import closing_workers

from mmseg_cct.datasets import PairDraw, PairSampler, SemiSegDataset
from mmseg_cct.datasets.semi_supervised import _warn_once
from mmseg_cct.errors import UserError

DRAW = PairDraw(labeled=1, unlabeled=2, labeled_seed=11, unlabeled_seed=12)


@pytest.fixture
def dataset(tree):
    return SemiSegDataset(tree.config('labeled'), tree.config('unlabeled'))


def test_a_number_of_labels_chooses_the_lists(tree):
    (tree.root / '1_labeled.txt').write_text('l1')
    (tree.root / '1_unlabeled.txt').write_text('u0\nu1\nu3')
    lists = dict(split_dir=str(tree.root), num_labeled=1)
    labeled, unlabeled = (tree.config(name, ann_file='x') for name in ('labeled', 'unlabeled'))
    pairs = SemiSegDataset(labeled, unlabeled, **lists)
    assert (len(pairs.labeled), len(pairs.unlabeled)) == (1, 3)
    baseline = SemiSegDataset(labeled, None, **lists)
    assert (len(baseline.labeled), baseline.unlabeled) == (1, None)
    assert labeled['ann_file'] == 'x'
    with pytest.raises(UserError, match=r'^labeled: .*/set/7_labeled\.txt'):
        SemiSegDataset(labeled, **lists | dict(num_labeled=7))


def test_strong_views_end_the_unlabelled_pipeline(tree):
    views = dict(type='StrongViews', num_views=2, jitter_prob=1.0)
    plain = SemiSegDataset(tree.config('labeled'), tree.config('unlabeled'))[DRAW]
    pairs = SemiSegDataset(tree.config('labeled'), tree.config('unlabeled'), strong_views=views)
    item = pairs[DRAW]
    names = ['labeled', 'unlabeled', 'unlabeled_strong_0', 'unlabeled_strong_1']
    assert list(item['inputs']) == list(item['data_samples']) == names
    # the views do not disturb what the other branches draw
    assert all(_equal(item[key][name], plain[key][name]) for key in item for name in names[:2])
    weak, *strong = [item['inputs'][name] for name in names[1:]]
    assert not torch.equal(weak, strong[0]) and not torch.equal(*strong)
    assert item['data_samples']['unlabeled_strong_1'].img_path == str(tree.image('u2'))
    baseline = SemiSegDataset(tree.config('labeled'), strong_views=views)
    assert 'strong_views' not in baseline[DRAW]


def test_a_batch_may_have_fewer_unlabelled_images(tree):
    settings = (tree.config('labeled'), tree.config('unlabeled'))
    views = dict(strong_views=dict(type='StrongViews'))
    whole, fewer = (SemiSegDataset(*settings, **views, labeled_per_unlabeled=k) for k in (1, 2))
    for expected, actual in zip(_batches(whole, 3), _batches(fewer, 3, num_workers=1)):
        for key, branches in actual.items():
            assert branches.keys() == expected[key].keys()
            for name, (first, second) in branches.items():
                assert _equal(first, expected[key][name][0])
                assert (second is None) == (name != 'labeled')
    baseline = SemiSegDataset(settings[0], labeled_per_unlabeled=2)
    assert len(_batches(baseline, 1)[0]['inputs']) == 2


def _equal(first, second):
    """Whether two items or batches hold the same tensors."""
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(_equal(first[k], second[k]) for k in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(_equal, first, second))
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if 'gt_sem_seg' in first and not torch.equal(first.gt_sem_seg.data, second.gt_sem_seg.data):
        return False
    return first.metainfo == second.metainfo


def _batches(dataset, number, num_workers=0, skip=0):
    """The first batches of a loader."""
    sampler = PairSampler(dataset, seed=5)
    sampler.skip(skip)
    options = dict(batch_size=2, sampler=sampler, collate_fn=pseudo_collate)
    loader = torch.utils.data.DataLoader(dataset, num_workers=num_workers, **options)
    with closing_workers(loader) as batches:
        return list(islice(batches, number))


class TestItem:
    def test_holds_both_branches(self, dataset, tree):
        item = dataset[DRAW]
        assert dataset.metainfo == dataset.METAINFO == dataset.labeled.metainfo
        assert item.keys() == {'inputs', 'data_samples'}
        for branch in ('labeled', 'unlabeled'):
            assert item['inputs'][branch].shape == (3, 12, 12)
            assert item['inputs'][branch].dtype == torch.uint8
            assert item['data_samples'][branch].metainfo['classes'] == ('ground', 'thing', 'other')
        labeled, unlabeled = item['data_samples']['labeled'], item['data_samples']['unlabeled']
        assert labeled.img_path == str(tree.image('l1'))
        assert unlabeled.img_path == str(tree.image('u2'))
        assert labeled.gt_sem_seg.data.shape == (1, 12, 12)
        assert 'gt_sem_seg' not in unlabeled and 'seg_map_path' not in unlabeled.metainfo

    def test_a_loader_must_draw_pairs(self, dataset):
        with pytest.raises(UserError, match=r"gave 3 as index; expected .*type='PairSampler'"):
            dataset.__getitems__([DRAW, 3])

    def test_by_index_come_all_images_as_they_are_trained_on(self, dataset):
        items = list(dataset)
        assert len(items) == len(dataset) == 7
        for index, item in enumerate(items):
            branch, index_in_set = ('labeled', index) if index < 3 else ('unlabeled', index - 3)
            seeds = {f'{branch}_seed': index, branch: index_in_set}
            pair = dataset[DRAW._replace(**seeds)]
            assert torch.equal(item['inputs'], pair['inputs'][branch])
            assert _equal(item['data_samples'], pair['data_samples'][branch])
        assert torch.equal(dataset[-1]['inputs'], items[-1]['inputs'])
        assert len(list(SemiSegDataset(dataset.labeled))) == 3


class TestSet:
    def test_takes_built_sets_and_leaves_them_alone(self, tree, dataset):
        unlabeled = DATASETS.build(tree.config('unlabeled'))
        built = SemiSegDataset(DATASETS.build(tree.config('labeled')), unlabeled)
        assert _equal(built[DRAW], dataset[DRAW])
        assert 'seg_map_path' in unlabeled.get_data_info(0)
        assert 'seg_map_path' not in built.unlabeled.get_data_info(0)
        lazy = [tree.config(name, lazy_init=True) for name in ('labeled', 'unlabeled')]
        assert _equal(SemiSegDataset(*lazy)[DRAW], dataset[DRAW])

    def test_takes_concatenated_sets_whose_masks_need_not_exist(self, tree, tmp_path):
        small_tree = Tree(tmp_path / 'other', num_unlabeled=2)
        shutil.rmtree(tmp_path / 'other/masks')
        parts = [tree.config('unlabeled'), small_tree.config('unlabeled')]
        both, views = dict(type='ConcatDataset', datasets=parts), dict(type='StrongViews')
        dataset = SemiSegDataset(tree.config('labeled'), both, strong_views=views)
        assert isinstance(dataset.unlabeled, ConcatDataset)
        assert len(dataset.unlabeled) == 6
        item = dataset[DRAW._replace(unlabeled=5)]
        assert 'unlabeled_strong_0' in item['inputs']
        sample = item['data_samples']['unlabeled']
        assert sample.img_path == str(small_tree.image('u1'))
        assert 'seg_map_path' not in sample.metainfo


class TestRandomness:
    def test_every_draw_of_an_image_is_augmented_afresh(self, dataset):
        images = [dataset[PairDraw(0, 0, seed, seed + 1)]['inputs'] for seed in range(0, 20, 2)]
        for branch in ('labeled', 'unlabeled'):
            assert len({image[branch].numpy().tobytes() for image in images}) == 10

    @pytest.mark.parametrize(('num_workers', 'skip'), [(2, 0), (1, 6)])
    def test_workers_give_the_batches_of_the_main_process(self, dataset, num_workers, skip):
        expected = _batches(dataset, 5)[skip // 2 :]
        assert _equal(_batches(dataset, len(expected), num_workers, skip), expected)


class TestErrors:
    @pytest.mark.parametrize(
        ('branch', 'change', 'message'),
        [
            ('labeled', dict(metainfo=None), r'\.metainfo: no class names; expected'),
            ('labeled', dict(ann_file='twice.txt'), r': .*twice\.txt: l1 is listed twice'),
            (
                'unlabeled',
                dict(ann_file='gone.txt', metainfo=None),
                r': .*gone\.txt: no such file',
            ),
        ],
    )
    def test_a_mistake_in_a_set_names_its_branch(self, tree, branch, change, message):
        (tree.root / 'twice.txt').write_text('l1\nl2\nl1\n')
        configs = {key: tree.config(key) for key in ('labeled', 'unlabeled')}
        configs[branch] |= change
        with pytest.raises(UserError, match=f'^{branch}{message}'):
            SemiSegDataset(**configs)[DRAW]

    def test_the_next_unlabelled_image_stands_in_for_a_damaged_one(self, tree, dataset, messages):
        _warn_once.cache_clear()
        following = dataset[DRAW._replace(unlabeled=1)]['inputs']['unlabeled']
        tree.image('u0').write_bytes(tree.image('u0').read_bytes()[:-20])
        for _ in range(2):
            drawn = dataset[DRAW._replace(unlabeled=0)]['inputs']['unlabeled']
            assert torch.equal(drawn, following)
        assert [line.startswith(str(tree.image('u0'))) for line in messages] == [True]

    def test_an_image_that_the_pipeline_cannot_take_is_named_by_a_worker(self, tree):
        for name in tree.unlabeled_names:  # the next would be used in the place of the first
            thin = np.zeros((3, 2000, 3), np.uint8)
            cv2.imwrite(str(tree.image(name)), thin)  # no row after Resize
        dataset = SemiSegDataset(tree.config('labeled'), tree.config('unlabeled'))
        options = dict(sampler=[DRAW._replace(unlabeled=0)], batch_size=None, num_workers=1)
        expected = r'u\d\.jpg: unlabeled\.pipeline does not run on it \(.*OpenCV'
        loader = torch.utils.data.DataLoader(dataset, **options)
        with closing_workers(loader) as batches, pytest.raises(UserError, match=expected):
            next(batches)
