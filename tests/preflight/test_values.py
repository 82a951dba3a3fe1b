"""What a training needs as a whole."""

import pytest
import world

from mmseg_cct.preflight.values import training_problems

_TEACHER = dict(type='TeacherHook')
_EMA = dict(type='EMAHook')
_RAMP = dict(type='RampUpHook', attribute='x.loss_weight')
_PLATEAU = dict(type='ReduceOnPlateauLR', monitor='mIoU', rule='greater')
CHECKPOINT = 'default_hooks.checkpoint'


def problems_of(changes):
    config = world.cct_config('')
    config.merge_from_dict(changes)
    return [str(problem) for problem in training_problems(config)]


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
            {'model.data_preprocessor.type': 'SegDataPreProcessor'},
            'train_dataloader.dataset.unlabeled: model.data_preprocessor.type is '
            'SegDataPreProcessor, which takes no pairs; expected BranchPreprocessor, or ',
        ),
        (
            {'train_cfg.type': 'EpochBasedTrainLoop'},
            'train_cfg: counts epochs, and train_dataloader.sampler PairSampler has no end; ',
        ),
        ({'param_scheduler.0': dict(_PLATEAU, by_epoch=True)}, None),
        (
            {'param_scheduler.0': dict(_PLATEAU, by_epoch=False)},
            'param_scheduler.0.by_epoch: False, so it would never get a metric; expected by_epoch',
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
    ],
)
def test_parts_of_a_training_go_together(changes, expected):
    found = problems_of(changes)
    assert len(found) == (expected is not None)
    assert not expected or found[0].startswith(expected)


@pytest.mark.parametrize(
    ('key', 'value', 'said'),
    [
        ('model.type', 'EncoderDecoder', "='EncoderDecoder': takes no pairs; expected a model t"),
        ('param_scheduler.0.by_epoch', True, ': True, and train_cfg counts iterations, so it w'),
        (f'{CHECKPOINT}.by_epoch', True, ': True, and train_cfg counts iterations, so nothing'),
        (
            'train_dataloader.dataset.labeled_per_unlabeled',
            9,
            '=9: no unlabelled image in a batch of 2; expected at most 2, or a larger train_data',
        ),
    ],
)
def test_a_setting_that_does_not_do_is_named(key, value, said):
    (problem,) = problems_of({key: value})
    assert problem.startswith(f'{key}{said}')
