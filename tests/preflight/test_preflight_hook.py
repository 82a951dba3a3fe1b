import json
from types import SimpleNamespace

import pytest
import tiny
from mmengine.config import Config
from mmengine.dataset import BaseDataset, RepeatDataset
from mmengine.runner import IterBasedTrainLoop
from mmseg.registry import MODELS
from torch.nn import Linear, Module

from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.preflight_hook import PreflightHook, _warn_of_leaks, describe_training


class Set(list):
    """So many images, or those of these paths."""

    def __init__(self, images, classes=None):
        is_number = isinstance(images, int)
        super().__init__([{}] * images if is_number else [dict(img_path=path) for path in images])
        self.metainfo = dict(classes=classes)

    get_data_info = list.__getitem__


def pairs(labeled, unlabeled, classes=('road', 'car')):
    dataset = SemiSegDataset.__new__(SemiSegDataset)
    dataset.labeled = Set(labeled, classes)
    dataset.metainfo = dataset.labeled.metainfo
    dataset.unlabeled = None if unlabeled is None else Set(unlabeled)
    return dataset


def runner_of(dataset, model=None):
    loader = SimpleNamespace(dataset=dataset, batch_size=8)
    parts = dict(train_dataloader=loader, val_loop=None, world_size=1, cfg=Config())
    return SimpleNamespace(model=model or Module(), **parts)


def test_the_line_counts_the_images_of_each_domain_and_names_classes():
    sets = SimpleNamespace(domains=dict(x=pairs(1, 2), y=pairs(3, 4, ('sky',))))
    assert describe_training(runner_of(sets)).startswith(
        'Training on x: 1 labelled and 2 unlabelled images, 2 classes (road, car); '
        'y: 3 labelled and 4 unlabelled images, 1 classes (sky); batch size 8'
    )


def test_a_missing_image_of_a_classifier_is_found_before_its_training(tmp_path):
    labels = dict(metainfo=dict(classes=['a']), data_list=[dict(img_path='x.png', gt_label=[0])])
    (tmp_path / 'labels.json').write_text(json.dumps(labels))
    dataset = BaseDataset(str(tmp_path / 'labels.json'), data_prefix=dict(img_path='none'))
    with pytest.raises(UserError, match=r'^train_dataloader\.dataset: none/x\.png: no such file'):
        PreflightHook().before_train(runner_of(RepeatDataset(dataset, 2)))


@pytest.mark.parametrize('domains', [False, True])
def test_an_image_that_is_trained_and_validated_on_is_told(domains, messages):
    pairs = SimpleNamespace(labeled=Set('la'), unlabeled=Set('ub'))
    val = Set('abc')
    if domains:
        supervised = SimpleNamespace(labeled=Set('x'), unlabeled=None)
        pairs = SimpleNamespace(domains=dict(first=supervised, second=pairs))
        val = SimpleNamespace(datasets=[Set('y'), val])
    _warn_of_leaks(pairs, val)
    assert [line.split(', the first is ')[0] for line in messages] == [
        '1 images are both labelled and validated on',
        '1 images are both validated on and unlabelled',
    ]
    messages.clear()
    pairs = SimpleNamespace(labeled=Set('ap'), unlabeled=Set('up'))
    pairs.unlabeled.used_twice = ['p']
    _warn_of_leaks(pairs, Set('c'))
    assert not messages
    pairs.labeled = Set('a')
    _warn_of_leaks(pairs, Set('p'))
    assert len(messages) == 1
    messages.clear()
    _warn_of_leaks(Set('ab'), Set('cd'))
    assert not messages


FIVE = ('sky', 'road', 'car', 'tree', 'person')


def start_training(second=None, model=None):
    """A model of the domains `first` (3 classes) and `second` (5), or another one of 3 classes."""
    config = tiny.multi_domain_config() if second is not None else tiny.model_config()
    config.merge(dict(domains=dict(second=second)) if second is not None else model)
    sets = dict(first=pairs(1, 2, FIVE[:3]), second=pairs(1, 2, FIVE))
    dataset = sets['first']
    if second is not None:
        metas = {name: part.metainfo for name, part in sets.items()}
        dataset = SimpleNamespace(domains=sets, metainfo=dict(domains=metas))
    PreflightHook().before_train(runner_of(dataset, MODELS.build(config)))


@pytest.mark.parametrize('domain', [None, 'second'])
@pytest.mark.parametrize(
    ('head', 'changes', 'key'),
    [
        ('decode_head', dict(num_classes=4), 'num_classes=4'),
        ('auxiliary_head', dict(num_classes=4), 'num_classes=4'),
        ('auxiliary_head', dict(context_classes=('rod',)), 'context_classes'),
    ],
)
def test_the_decoders_of_every_domain_fit_its_classes(domain, head, changes, key):
    with pytest.raises(UserError) as caught:
        start_training(**{'second' if domain else 'model': {head: changes}})
    place = f'model.domains.{domain}.{head}' if domain else f'model.{head}'
    assert caught.value.problems[0].key == f'{place}.{key}'


def test_classes_by_name_and_id_may_be_context():
    start_training(model=dict(auxiliary_head=dict(context_classes=('road', 0))))


@pytest.mark.parametrize('domains', [False, True])
def test_classes_in_another_order(domains):
    def load_checkpoint(trained_on, data):
        metas = [dict(classes=classes and tuple(classes)) for classes in (trained_on, data)]
        if domains:
            metas = [dict(domains=dict(a=meta)) for meta in metas]
        model, dataset = Linear(1, 1), SimpleNamespace(metainfo=metas[1])
        loop = IterBasedTrainLoop.__new__(IterBasedTrainLoop)
        runner = runner_of(dataset, model)
        vars(runner).update(_train_loop=loop, _load_from=None, _resume=False)
        checkpoint = dict(meta=dict(dataset_meta=metas[0]), state_dict=model.state_dict())
        PreflightHook().after_load_checkpoint(runner, checkpoint)

    load_checkpoint('abc', 'abc')
    load_checkpoint('abc', 'abd')  # other classes, maybe on purpose
    load_checkpoint(None, 'abc')
    with pytest.raises(UserError) as caught:
        load_checkpoint('acb', 'abc')
    assert caught.value.problems[0].key == 'the checkpoint' + ', domain a' * domains
