import copy

import pytest
from mmengine.config import Config
from mmengine.registry import DefaultScope

from mmseg_cct.errors import UserError
from mmseg_cct.preflight.components import find_components
from mmseg_cct.preflight.stages import check_components, check_config

CONFIG = Config(
    dict(
        default_scope='mmseg',
        model=dict(
            type='EncoderDecoder',
            backbone=dict(type='ResNet', depth=18, norm_cfg=dict(type='BN', requires_grad=True)),
            neck=dict(type='PSPNeck', in_channels=8, channels=6),
            decode_head=dict(type='FCNHead', in_channels=6, channels=6, num_classes=3),
        ),
        train_dataloader=dict(
            sampler=dict(type='PairSampler'),
            dataset=dict(type='BaseSegDataset', pipeline=[dict(type='LoadImageFromFile')]),
        ),
        test_evaluator=[dict(type='IoUMetric')],
        train_cfg=dict(type='IterBasedTrainLoop', max_iters=6),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1), clip_grad=None),
        param_scheduler=dict(type='PolyLR', power=0.9, by_epoch=False, begin=0, end=6),
        default_hooks=dict(timer=dict(type='IterTimerHook', priority='LOW'), logger=None),
        custom_hooks=[
            dict(type='RampUpHook', attribute='decode_head.weight', end=1.0, fraction=0.5),
        ],
        visualizer=dict(type='SegLocalVisualizer', vis_backends=[dict(type='LocalVisBackend')]),
    )
)


def spoilt(key, value):
    config = copy.deepcopy(CONFIG)
    config.merge_from_dict({key: value})
    return config


def test_a_good_config_passes():
    check_config(CONFIG)


def test_transforms_of_albumentations_are_left_to_it():
    albu = dict(type='Albu', transforms=[dict(type='RandomBrightnessContrast', p=0.2)])
    check_config(spoilt('train_dataloader.dataset.pipeline', [albu]))


def test_components_are_found_from_the_outside_in():
    keys = [component.key for component in find_components(CONFIG)]
    assert keys == [
        'model', 'model.backbone', 'model.neck', 'model.decode_head',
        'train_dataloader.dataset', 'train_dataloader.dataset.pipeline.0',
        'train_dataloader.sampler', 'test_evaluator.0', 'train_cfg',
        'optim_wrapper.optimizer', 'param_scheduler', 'default_hooks.timer', 'custom_hooks.0',
        'visualizer', 'visualizer.vis_backends.0',
    ]  # fmt: skip


@pytest.mark.parametrize(
    ('key', 'value', 'message'),
    [
        ('model.neck.type', 'PSPNek', r"^model\.neck\.type: no 'PSPNek' in mmseg.* mean PSPNeck"),
        ('train_cfg.type', 'Zzz', r"^train_cfg\.type: no 'Zzz' .*; expected a registered compo"),
        ('train_dataloader.dataset.pipeline.0.type', 'LoadImage', r'pipeline\.0\.type: no'),
        ('test_evaluator.0.type', 'mIoU', r"^test_evaluator\.0\.type: no 'mIoU'"),
        ('default_hooks.timer.type', 'TimerHook', r'^default_hooks\.timer\.type: .* IterTimerHook'),
        ('model.neck.bin', 2, r"^model\.neck: unexpected.* 'bin'; expected what PSPNeck takes"),
        ('optim_wrapper.optimizer.rl', 1, r"optimizer: unexp.* 'rl'; expected what SGD takes"),
        ('default_hooks.timer', dict(_delete_=True, type='MainProcessLoggerHook', intervall=5),
         r"timer: unexpected .* 'intervall'; expected what MainProcessLoggerHook takes"),
        ('visualizer.vis_backends', [dict(type='GroupedTensorboardVisBackend', save_dirr='x')],
         r"unexpected .* 'save_dirr'; expected what GroupedTensorboardVisBackend takes"),
        ('custom_hooks', [dict(type='RampUpHook', end=1.0)], r'custom_hooks\.0: no attribute; exp'),
        ('optim_wrapper.optimizer', dict(_delete_=True, lr=1), r'^optim_wrapper\.optimizer: no t'),
        ('custom_hooks', [{}], r'^custom_hooks\.0: no type; expected type=..., the name of a hook'),
        ('model.neck', 7, r'^model\.neck=7: expected dict\(type=...\), a model'),
        ('model.neck.type', ['PSPNeck'], r"type=\['PSPNeck'\]: expected the name of a"),
        ('model.neck.type', '../x', r"^model\.neck\.type: no '../x' in mmseg's registry of models"),
        ('train_dataloader.dataset.pipeline', ['x'], r"pipeline\.0='x': expected dict\(type="),
    ],
)  # fmt: skip
def test_a_wrong_type_or_argument_is_one_line(key, value, message):
    with pytest.raises(UserError, match=message):
        check_config(spoilt(key, value))


def test_all_problems_of_a_stage_are_listed_and_none_of_later_ones():
    config = spoilt('model.neck.type', 'PSPNek')
    config.merge_from_dict({'model.neck.bin': 2, 'optim_wrapper.optimizer.rl': 1, 'train_cfg.x': 0})
    with pytest.raises(UserError) as error:
        check_config(config)
    keys = [line.split(':')[0] for line in str(error.value).splitlines()]
    assert keys == ['model.neck.type', 'train_cfg', 'optim_wrapper.optimizer']
    config.merge_from_dict({'train_cfg.max_iters': 0, 'custom_hooks.0.fraction': 2})
    with pytest.raises(UserError) as error:
        check_config(config)
    assert str(error.value).splitlines() == [
        'train_cfg.max_iters=0: expected a whole number from 1',
        'custom_hooks.0.fraction=2: expected a number in [0, 1]',
    ]


def test_the_scope_is_left_as_it_was():
    with DefaultScope.overwrite_default_scope('mmengine'):
        check_config(CONFIG)
        assert DefaultScope.get_current_instance().scope_name == 'mmengine'


def test_a_config_without_a_model_is_one_of_no_run():
    with pytest.raises(UserError, match=r'^model: missing; expected the config of a model$'):
        check_config({})
    check_components({})  # a tool that builds no model
    with pytest.raises(UserError, match=r'^model: missing; expected the config of a model$'):
        check_components({}, section='model')
