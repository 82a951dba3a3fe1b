import pytest
import torch
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS

from mmseg_cct.datasets import MultiDomainDraw, PairDraw
from mmseg_cct.errors import UserError

DRAW = PairDraw(labeled=1, unlabeled=2, labeled_seed=11, unlabeled_seed=12)


def scenes(size, start, count, labeled=True):
    steps = [dict(type='DrawShapesScene', with_seg_map=labeled), dict(type='Resize', scale=size)]
    steps += [dict(type='RandomFlip', prob=0.5), dict(type='PackSegInputs')]
    return dict(type='ShapesDataset', start=start, count=count, pipeline=steps)


def pairs(size=(64, 64), unlabeled=True, **kwargs):
    second = scenes(size, 10, 5, labeled=False) if unlabeled else None
    return dict(type='SemiSegDataset', labeled=scenes(size, 0, 3), unlabeled=second, **kwargs)


def domains(**kwargs):
    return dict(a=pairs(**kwargs), b=pairs(size=(40, 24), **kwargs))


def build(parts):
    return DATASETS.build(dict(type='MultiDomainDataset', domains=parts))


@pytest.fixture(scope='module')
def dataset():
    init_default_scope('mmseg')
    return build(domains())


def test_a_draw_is_that_of_the_domains_own_set_and_names_it(dataset):
    for name, size in (('a', (64, 64)), ('b', (24, 40))):
        item = dataset[MultiDomainDraw(name, DRAW)]
        expected = dataset.domains[name][DRAW]
        for branch in ('labeled', 'unlabeled'):
            assert torch.equal(item['inputs'][branch], expected['inputs'][branch])
            assert item['inputs'][branch].shape == (3, *size)
            assert item['data_samples'][branch].domain == name
            assert ('gt_sem_seg' in item['data_samples'][branch]) == (branch == 'labeled')


def test_by_index_come_all_images_of_one_domain_after_the_other(dataset):
    items = list(dataset)
    assert len(dataset) == 16
    assert [item['data_samples'].domain for item in items] == ['a'] * 8 + ['b'] * 8
    for index, item in enumerate(items):
        assert torch.equal(item['inputs'], dataset.domains['ab'[index // 8]][index % 8]['inputs'])
    assert dataset.metainfo == dataset.METAINFO
    assert dataset.metainfo['domains']['a']['classes'][1] == 'disc'


def test_domains_of_a_test_set_may_differ_in_their_classes(tree):
    classes = dict(classes=('x', 'y'), palette=[[1, 1, 1], [2, 2, 2]])
    parts = dict(a=scenes((40, 24), 0, 2), b=tree.config('labeled', metainfo=classes))
    dataset = DATASETS.build(dict(type='MultiDomainConcatDataset', domains=parts))
    assert [item['data_samples'].domain for item in dataset] == ['a', 'a', 'b', 'b', 'b']
    assert dataset[1]['inputs'].shape == (3, 24, 40) and dataset[4]['inputs'].shape == (3, 12, 12)
    assert list(dataset.metainfo['domains']) == ['a', 'b']
    assert len(dataset.metainfo['domains']['a']['classes']) == 7
    assert dataset.metainfo['domains']['b']['classes'] == ('x', 'y')


@pytest.mark.parametrize(
    ('parts', 'key'),
    [
        (dict(b=dict(pairs(), unlabeled=scenes((9, 9), 0, 0))), 'b.unlabeled'),
        (dict(b=pairs(labeled_per_unlabeled=2)), 'b.labeled_per_unlabeled=2'),
    ],
)
def test_a_mistake_in_a_domain_has_its_key(parts, key):
    with pytest.raises(UserError) as caught:
        build(parts)
    (problem,) = caught.value.problems
    assert problem.key.startswith(f'train_dataloader.dataset.domains.{key}')
