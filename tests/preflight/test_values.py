"""The kinds of sections, and what a training needs as a whole."""

import copy
import re

import pytest
from mmengine.config import Config
from mmseg.datasets import BaseSegDataset
from mmseg.registry import MODELS

from mmseg_cct.config.structure import check_structure
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.values import check_values, training_problems, value_problems


@pytest.mark.parametrize(
    'config',
    [
        {},
        dict(model=None, train_dataloader=None, custom_hooks=None, default_scope=None),
        dict(
            model=dict(type='X', domains=dict(a=dict(data_preprocessor=dict(size=(2, 3))))),
            param_scheduler=[dict(type='PolyLR')],
            val_evaluator=dict(type='IoUMetric'),
            test_evaluator=[dict(type='IoUMetric'), dict(type='X')],
            custom_hooks=[dict(type='EMAHook')],
            default_scope='mmseg',
        ),
    ],
)
def test_sections_that_may_be(config):
    check_structure(Config(config))
    check_values(Config(config))


def test_an_object_from_python_may_stand_for_its_config():
    dataset = BaseSegDataset.__new__(BaseSegDataset)
    check_structure(dict(train_dataloader=dict(dataset=dataset)))


@pytest.mark.parametrize(
    ('config', 'expected'),
    [
        (dict(model='x'), "model='x': expected a dict, or None"),
        (dict(train_cfg=[3]), r'train_cfg=\[3\]: expected a dict, or None'),
        (dict(train_cfg=['x' * 99]), r"train_cfg=\['x{78} \.\.\.: expected a dict, or None"),
        (dict(test_dataloader=True), 'test_dataloader=True: expected a dict'),
        (dict(val_dataloader=dict(dataset=[{}])), r'val_dataloader\.dataset=\[\{\}\]: expected a'),
        (dict(param_scheduler=[{}, 0]), r'param_scheduler=\[\{\}, 0\]: expected a dict or list of'),
        (
            dict(custom_hooks=dict(a=1)),
            r"custom_hooks=\{'a': 1\}: expected a list of dicts, or None",
        ),
        (dict(default_hooks=dict(logger=[{}])), r'default_hooks\.logger=\[\{\}\]: expected a d'),
        (dict(custom_hooks=[[]]), r'custom_hooks=\[\[\]\]: expected a list of dicts'),
        (dict(default_scope=['mmseg']), r"default_scope=\['mmseg'\]: expected a text, or None"),
        (dict(load_from=3), 'load_from=3: expected a text'),
    ],
)
def test_sections_of_another_kind(config, expected):
    with pytest.raises(UserError, match=expected):
        check_structure(Config(config))


@pytest.mark.parametrize('size', [3, (3,), (3, 0), (3, 2.5), {'x': (3, 3)}])
def test_a_size_is_height_and_width(size):
    config = Config(dict(model=dict(domains=dict(a=dict(data_preprocessor=dict(size=size))))))
    with pytest.raises(UserError, match=r'domains\.a\.data_preprocessor\.size=.*: expected height'):
        check_values(config)


@pytest.mark.parametrize(
    ('component', 'expected'),
    [
        (dict(type='PairwiseVariance', num_decoders=2), None),
        (dict(type='PairwiseVariance', num_decoders=1), 'a whole number from 2'),
        (dict(type='PairwiseVariance', num_decoders=2.0), 'a whole number from 2'),
        (dict(type='PairwiseVariance', num_decoders=True), 'a whole number from 2'),
        (dict(type='KLConsistency', confidence_threshold=None), None),
        (dict(type='KLConsistency', confidence_threshold=2), 'a number in [0, 1], or None'),
        (dict(type='FeatureDrop', num_decoders=0), None),
        (dict(type='FeatureDrop', num_decoders=-1), 'a whole number from 0'),
        (dict(type='Unknown', num_decoders=-1), None),
    ],
)
def test_constructors_state_the_ranges_of_a_config(component, expected):
    config = Config(dict(model=dict(auxiliary_head=dict(perturbations=dict(x=component)))))
    key = 'model.auxiliary_head.perturbations.x'
    value = list(component.values())[1]
    found = [f'{key}.{list(component)[1]}={value!r}: expected {expected}'] if expected else []
    assert [str(problem) for problem in value_problems(config)] == found
    if expected:
        with pytest.raises(UserError, match=re.escape(found[0].removeprefix(f'{key}.'))):
            MODELS.build(component)


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('train_cfg.max_iters', 'many'),
        ('train_cfg.max_iters', True),
        ('train_cfg.val_interval', 0),
        ('train_dataloader.batch_size', 0),
        ('train_dataloader.dataset.labeled_per_unlabeled', 0),
        ('train_dataloader.num_workers', -1),
        ('val_dataloader.batch_size', 'two'),
        ('randomness.seed', -1),
        ('randomness.seed', 2**32),
        ('randomness.seed', 'seven'),
        ('optim_wrapper.accumulative_counts', 0),
        ('optim_wrapper.optimizer.lr', 'fast'),
        ('optim_wrapper.optimizer.lr', float('nan')),
        ('optim_wrapper.optimizer.momentum', -0.5),
        ('optim_wrapper.optimizer.momentum', 1.5),
        ('custom_hooks.0.momentum', 1.5),
        ('model.auxiliary_head.loss_consistency.loss_weight', -1),
        ('model.backbone.norm_cfg.momentum', 2),
        ('model.decode_head.num_classes', 0),
        ('model.test_cfg.mode', None),
        ('model.test_cfg.mode', 'slid'),
        ('default_hooks.checkpoint.interval', 0),
        ('default_hooks.logger.interval', -1),
        ('val_dataloader.dataset.metainfo.classes', ('a', '\udce9')),
        ('train_dataloader.dataset.labeled.classes', (1, 2)),
    ],
)
def test_values_out_of_range(key, value):
    config = Config()
    config.merge_from_dict({key: value})
    (problem,) = value_problems(config)
    assert str(problem).startswith(f'{key}={value!r}: expected ')


def test_a_sliding_window_has_a_size_and_a_stride():
    config = Config(dict(model=dict(test_cfg=dict(mode='slide', crop_size=(8, 8)))))
    (problem,) = value_problems(config)
    assert str(problem) == 'model.test_cfg.stride: missing; expected one for mode="slide"'


def test_class_weights_are_those_of_the_nearest_head():
    heads = [dict(num_classes=2, losses=[dict(class_weight=[1.0, 2.0])])] * 2
    heads.append(dict(loss=dict(class_weight=[1.0])))
    config = Config(dict(model=dict(num_classes=3, heads=heads)))
    (problem,) = value_problems(config)
    key = 'model.heads.2.loss.class_weight'
    assert str(problem) == f'{key}: 1 weights; expected 3, one per class'


_TEACHER = dict(type='TeacherHook')
_EMA = dict(type='EMAHook')
_RAMP = dict(type='RampUpHook', attribute='x.loss_weight')
CHECKPOINT = 'default_hooks.checkpoint'
PAIRS = dict(
    default_scope='mmseg',
    model=dict(type='CCTSegmentor', data_preprocessor=dict(type='BranchPreprocessor')),
    train_dataloader=dict(
        batch_size=4,
        sampler=dict(type='PairSampler'),
        dataset=dict(type='SemiSegDataset', labeled=dict(), unlabeled=dict()),
    ),
    train_cfg=dict(type='IterBasedTrainLoop', max_iters=6),
    optim_wrapper=dict(optimizer=dict(type='SGD'), clip_grad=dict(max_norm=1)),
    param_scheduler=[dict(type='PolyLR', by_epoch=False)],
    default_hooks=dict(checkpoint=dict(interval=3, by_epoch=False)),
    val_dataloader=dict(),
    val_cfg=dict(),
    val_evaluator=dict(),
)


@pytest.mark.parametrize(
    ('changes', 'expected'),
    [
        ({}, None),
        ({'train_dataloader.dataset.unlabeled': None, 'model.type': 'EncoderDecoder'}, None),
        ({CHECKPOINT: dict(_delete_=True, type='CheckpointHook', save_best='mIoU')}, None),
        (
            {CHECKPOINT: dict(_delete_=True, type='DurableCheckpointHook')},
            'default_hooks.checkpoint.by_epoch: True, and train_cfg counts iterations, so nothing ',
        ),
        ({'train_cfg.type': 'EpochBasedTrainLoop', 'train_dataloader.sampler.type': 'X'}, None),
        (
            {'train_dataloader.dataset.labeled': None},
            'train_dataloader.dataset.labeled: missing; expected a labelled set',
        ),
        (
            {'val_evaluator': None},
            'val_evaluator: missing; expected one, because there is a val_dataloader',
        ),
        (
            {'optim_wrapper.optimizer': None},
            'optim_wrapper.optimizer: missing; expected one, as in dict(type="SGD", ...)',
        ),
        (
            {'optim_wrapper.clip_grad.max_nrm': 1},
            'optim_wrapper.clip_grad.max_nrm: unknown; expected max_norm, ',
        ),
        (
            {'model.data_preprocessor.type': 'SegDataPreProcessor'},
            'train_dataloader.dataset.unlabeled: model.data_preprocessor.type is '
            'SegDataPreProcessor, which takes no pairs; expected BranchPreprocessor, or ',
        ),
        (
            {'train_dataloader.dataset.labeled_per_unlabeled': 9},
            'train_dataloader.dataset.labeled_per_unlabeled=9: no unlabelled image in a batch of '
            '4; expected at most 4, or a larger train_dataloader.batch_size',
        ),
        (
            {'model.type': 'EncoderDecoder'},
            "model.type='EncoderDecoder': takes no pairs; expected a model that does, such as CCT",
        ),
        (
            {'train_cfg.type': 'EpochBasedTrainLoop'},
            'train_cfg: counts epochs, and train_dataloader.sampler PairSampler has no end; ',
        ),
        (
            {'param_scheduler.0.by_epoch': True},
            'param_scheduler.0.by_epoch: True, and train_cfg counts iterations, so it would never',
        ),
        (
            {'default_hooks.checkpoint.by_epoch': True},
            'default_hooks.checkpoint.by_epoch: True, and train_cfg counts iterations, so nothing',
        ),
        (
            {'default_hooks.teacher': _TEACHER, 'custom_hooks': [_TEACHER]},
            'custom_hooks.0: a second TeacherHook after default_hooks.teacher; expected one',
        ),
        (
            {'custom_hooks': [_RAMP, _RAMP]},
            'custom_hooks.1: a second RampUpHook of x.loss_weight after custom_hooks.0; expected',
        ),
        ({'custom_hooks': [_RAMP, dict(_RAMP, attribute='y')]}, None),
        (
            {'custom_hooks': [_EMA, _EMA]},
            'custom_hooks.1: a second hook that validates averaged weights after custom_hooks.0; ',
        ),
        (
            {'default_hooks.teacher': dict(_TEACHER, evaluate='teacher'), 'custom_hooks': [_EMA]},
            'custom_hooks.0: a second hook that validates averaged weights after default_hooks.t',
        ),
        ({'default_hooks.teacher': _TEACHER, 'custom_hooks': [_EMA]}, None),
        (
            {'custom_hooks': [dict(_RAMP, end=-5)]},
            'custom_hooks.0.end=-5: expected a loss weight from 0',
        ),
    ],
)
def test_parts_of_a_training_go_together(changes, expected):
    config = Config(copy.deepcopy(PAIRS))
    config.merge_from_dict(changes)
    found = [str(problem) for problem in training_problems(config)]
    assert len(found) == (expected is not None)
    assert not expected or found[0].startswith(expected)
