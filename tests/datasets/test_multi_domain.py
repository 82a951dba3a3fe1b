import pytest
import torch
from mmengine.registry import init_default_scope
from mmengine.runner import Runner
from mmseg.registry import DATASETS

from mmseg_cct.datasets import (
    MultiDomainDataset,
    MultiDomainDraw,
    PairDraw,
    SemiSegDataset,
)
from mmseg_cct.errors import UserError

DRAW = PairDraw(labeled=1, unlabeled=2, labeled_seed=11, unlabeled_seed=12)
LOAD = [dict(type='DrawShapesScene')]
LOAD_UNLABELED = [dict(type='DrawShapesScene', with_seg_map=False)]


def tail(size):
    return [
        dict(type='Resize', scale=size),
        dict(type='RandomFlip', prob=0.5),
        dict(type='PackSegInputs'),
    ]


def pairs(size=(64, 64), unlabeled=True, **kwargs):
    config = dict(
        type='SemiSegDataset',
        labeled=dict(type='ShapesDataset', start=0, count=3, pipeline=LOAD + tail(size)),
        unlabeled=dict(
            type='ShapesDataset', start=10, count=5, pipeline=LOAD_UNLABELED + tail(size)
        ),
    )
    if not unlabeled:
        config['unlabeled'] = None
    return {**config, **kwargs}


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
    assert [item['data_samples'].domain for item in items] == ['a'] * 8 + ['b'] * 8
    for index, item in enumerate(items):
        assert torch.equal(item['inputs'], dataset.domains['ab'[index // 8]][index % 8]['inputs'])


def test_without_unlabelled_sets_a_draw_is_mmsegs_own():
    dataset = build(domains(unlabeled=False))
    item = dataset[MultiDomainDraw('b', DRAW)]
    assert item['inputs'].shape == (3, 24, 40)
    assert item['data_samples'].domain == 'b'
    assert len(dataset) == 6


def test_length_and_meta_information(dataset):
    assert len(dataset) == 16
    assert dataset.metainfo == dataset.METAINFO
    assert list(dataset.metainfo) == ['domains']
    assert list(dataset.metainfo['domains']) == ['a', 'b']
    assert dataset.metainfo['domains']['a']['classes'][1] == 'disc'


@pytest.mark.parametrize('num_workers', [0, 2])
def test_loader_gives_batches_of_one_domain_in_turn(dataset, num_workers):
    loader = Runner.build_dataloader(
        dict(
            batch_size=2,
            num_workers=num_workers,
            sampler=dict(type='MultiDomainSampler', batch_size=2, weights=dict(b=2)),
            dataset=dataset,
        ),
        seed=0,
    )
    seen = []
    for batch, _ in zip(loader, range(6)):
        names = {sample.domain for branch in batch['data_samples'].values() for sample in branch}
        assert len(names) == 1
        assert [len(images) for images in batch['inputs'].values()] == [2, 2]
        seen += names
    assert ''.join(seen) == 'babbab'


def test_a_test_set_of_all_domains():
    parts = dict(
        a=dict(type='ShapesDataset', start=0, count=2, pipeline=LOAD + tail((64, 64))),
        b=dict(type='ShapesDataset', start=5, count=3, pipeline=LOAD + tail((40, 24))),
    )
    dataset = DATASETS.build(dict(type='MultiDomainConcatDataset', domains=parts))
    assert len(dataset) == 5
    assert [dataset[k]['data_samples'].domain for k in range(5)] == ['a', 'a', 'b', 'b', 'b']
    assert list(dataset.metainfo['domains']) == ['a', 'b']
    assert dataset[4]['inputs'].shape == (3, 24, 40)


def test_domains_of_a_test_set_may_differ_in_their_classes(tree):
    parts = dict(
        a=dict(type='ShapesDataset', start=0, count=2, pipeline=LOAD + tail((64, 64))),
        b=tree.config('labeled', metainfo=dict(classes=('x', 'y'), palette=[[1, 1, 1], [2, 2, 2]])),
    )
    dataset = DATASETS.build(dict(type='MultiDomainConcatDataset', domains=parts))
    assert len(dataset.metainfo['domains']['a']['classes']) == 7
    assert dataset.metainfo['domains']['b']['classes'] == ('x', 'y')
    assert dataset[3]['data_samples'].domain == 'b'


@pytest.mark.parametrize(
    ('parts', 'match'),
    [
        ({}, r'dataset.domains: empty; expected a SemiSegDataset'),
        (
            dict(a=pairs(), b=dict(type='ShapesDataset', start=0, count=2)),
            r'dataset.domains.b: a ShapesDataset; expected a SemiSegDataset',
        ),
        (
            dict(a=pairs(), b=pairs(unlabeled=False)),
            r'dataset.domains.b.unlabeled: missing; expected one, as in the other domains',
        ),
        (
            dict(
                a=pairs(),
                b=dict(
                    pairs(), unlabeled=dict(type='ShapesDataset', start=0, count=0, pipeline=[])
                ),
            ),
            r'dataset.domains.b.unlabeled: ShapesDataset.count=0',
        ),
    ],
)
def test_a_domain_that_does_not_fit_is_an_error(parts, match):
    with pytest.raises(UserError, match=match):
        build(parts)


def test_an_index_of_another_sampler_is_an_error(dataset):
    with pytest.raises(
        UserError, match=r"gave 0 as index; expected sampler=dict\(type='MultiDomain"
    ):
        dataset.__getitems__([0])


def test_an_empty_test_set_is_an_error():
    with pytest.raises(UserError, match=r'MultiDomainConcatDataset.domains: empty'):
        DATASETS.build(dict(type='MultiDomainConcatDataset', domains={}))


def test_built_sets_are_taken_as_they_are(dataset):
    part = dataset.domains['b']
    assert isinstance(part, SemiSegDataset)
    assert MultiDomainDataset(dict(a=part)).domains['a'] is part


def test_a_test_set_may_take_its_pipelines_from_elsewhere():
    parts = {name: pairs()['labeled'] for name in 'ab'}
    steps = [dict(type='DrawShapesScene'), dict(type='PackSegInputs')]
    settings = dict(type='MultiDomainConcatDataset', domains=parts)
    both = DATASETS.build(dict(settings, pipeline=dict(a=steps, b=steps)))
    assert both[0]['data_samples'].domain == 'a' and both[3]['inputs'].shape == (3, 64, 64)
    with pytest.raises(UserError, match=r'^tta_pipeline: none for the domain b; expected one by'):
        DATASETS.build(dict(settings, pipeline=dict(a=steps)))
