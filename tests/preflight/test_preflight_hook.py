import json
import re
from types import SimpleNamespace

import pytest
import tiny
import world
from mmengine.config import Config
from mmengine.dataset import BaseDataset, RepeatDataset
from mmengine.runner import IterBasedTrainLoop
from mmseg.registry import MODELS
from torch.nn import Linear, Module

from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.engine.labels_record import LABELS, read_labels
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.files import leaks
from mmseg_cct.preflight.preflight_hook import (
    PreflightHook,
    describe_training,
    keep_labeled_images,
)


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
    line = describe_training(runner_of(sets))
    assert re.findall(r'\d+', line) == ['1', '2', '2', '3', '4', '1', '8']
    assert '(road, car)' in line and '(sky)' in line


def test_a_missing_image_of_a_classifier_is_found_before_its_training(tmp_path):
    labels = dict(metainfo=dict(classes=['a']), data_list=[dict(img_path='x.png', gt_label=[0])])
    (tmp_path / 'labels.json').write_text(json.dumps(labels))
    dataset = BaseDataset(str(tmp_path / 'labels.json'), data_prefix=dict(img_path='none'))
    with pytest.raises(UserError, match=r'^train_dataloader\.dataset: none/x\.png: no such file'):
        PreflightHook().before_train(runner_of(RepeatDataset(dataset, 2)))


@pytest.mark.parametrize('domains', [False, True])
def test_an_image_that_is_trained_and_validated_on_is_told(domains):
    def told(trained, val):
        if domains:
            trained = SimpleNamespace(domains=dict(first=pairs('x', None), second=trained))
            val = SimpleNamespace(datasets=[Set('y'), val])
        return [line.split(', the first is ')[0] for line in leaks(trained, val)]

    assert told(pairs('la', 'ub'), Set('abc')) == [
        '1 images are both labelled and validated on',
        '1 images are both validated on and unlabelled',
    ]
    partly = pairs('ap', 'up')
    partly.unlabeled.used_twice = ['p']
    assert told(partly, Set('c')) == []
    assert len(told(partly, Set('p'))) == 1


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
@pytest.mark.parametrize('head', ['decode_head', 'auxiliary_head'])
def test_the_decoders_of_every_domain_fit_its_classes(domain, head):
    with pytest.raises(UserError) as caught:
        start_training(**{'second' if domain else 'model': {head: dict(num_classes=4)}})
    place = f'model.domains.{domain}.{head}' if domain else f'model.{head}'
    assert caught.value.problems[0].key == f'{place}.num_classes=4'


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


def test_a_training_resumes_with_the_labelled_images_that_it_began_with(tmp_path, messages):
    world.write_images(tmp_path / 'data')
    settings = world.cct_config(tmp_path / 'data').train_dataloader.dataset

    def start(resume=False, validated='labeled'):
        dataset = SemiSegDataset(**{k: v for k, v in settings.items() if k != 'type'})
        loader = SimpleNamespace(dataset=dataset)
        val_loop = SimpleNamespace(dataloader=SimpleNamespace(dataset=getattr(dataset, validated)))
        run = dict(train_dataloader=loader, val_loop=val_loop, work_dir=tmp_path, _resume=resume)
        keep_labeled_images(SimpleNamespace(**run))
        return [path.rsplit('/')[-1] for path in read_labels(tmp_path).labeled]

    assert read_labels(tmp_path) is None
    assert start(resume=True) == start() == ['l0.png', 'l1.png', 'l2.png']
    (tmp_path / 'data/masks/u1.png').write_bytes((tmp_path / 'data/masks/l1.png').read_bytes())
    assert read_labels(tmp_path).unlabeled == 5
    with pytest.raises(UserError, match='4 images are labelled, 3 were when') as caught:
        start(resume=True)
    assert caught.value.problems[0].key == '--resume'
    assert start() == ['l0.png', 'l1.png', 'l2.png', 'u1.png']
    assert not messages
    start(resume=True, validated='unlabeled')
    assert messages.pop().startswith('--resume: other images validate')
    image = tmp_path / 'data/images/u2.png'
    image.rename(tmp_path / 'data/images/v2.png')
    start(resume=True)
    assert messages.pop().startswith('--resume: other unlabelled images')
    (tmp_path / 'data/images/v2.png').rename(image)
    (tmp_path / 'data').rename(tmp_path / 'moved')
    for branch in ('labeled', 'unlabeled'):
        settings[branch].data_root = str(tmp_path / 'moved')
    assert start(resume=True) == ['l0.png', 'l1.png', 'l2.png', 'u1.png']
    assert not messages
    (tmp_path / 'moved/images/l0.png').rename(tmp_path / 'moved/images/l9.png')
    (tmp_path / 'moved/masks/l0.png').rename(tmp_path / 'moved/masks/l9.png')
    with pytest.raises(UserError, match='4 images are labelled, 4 were'):
        start(resume=True)


def test_a_damaged_record_is_named(tmp_path):
    (tmp_path / LABELS).write_text('{"lab')
    with pytest.raises(UserError) as caught:
        read_labels(tmp_path)
    assert caught.value.problems[0].key == str(tmp_path / LABELS)
