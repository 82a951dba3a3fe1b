"""What a config leaves out follows from what it says, on configs of a few dicts."""

import pytest
from mmengine.config import Config

from mmseg_cct.config.derive import derive
from mmseg_cct.config.load import load_config
from mmseg_cct.errors import UserError

DOMAINS = dict(a=dict(num_labeled=7), b=dict(num_labeled=17))


def derived(**settings):
    config = Config(settings)
    derive(config)
    return config


def counted(train_set=None, **settings):
    """Of 107 images 7 are labelled: an epoch is 10 batches of 10."""
    loader = dict(batch_size=10, dataset=train_set or dict(num_labeled=7))
    return derived(
        **{'num_images': 107, 'train_dataloader': loader, 'train_cfg': {}, 'epochs': 6, **settings}
    )


@pytest.mark.parametrize(
    ('settings', 'expected'),
    [
        ({}, (60, 10)),
        (dict(val_epochs=2), (60, 20)),
        (dict(val_epochs=2, train_cfg=dict(max_iters=5)), (5, 20)),
        (dict(train_cfg=dict(max_iters=5, val_interval=1)), (5, 1)),
        # each domain takes its turn, and the one with most labels is passed once
        (dict(train_set=dict(domains=DOMAINS)), (108, 18)),
    ],
)
def test_epochs_count_passes_over_the_unlabelled_images(settings, expected):
    config = counted(**settings)
    assert (config.train_cfg.max_iters, config.train_cfg.val_interval) == expected
    assert not {'epochs', 'val_epochs', 'num_images'} & config.keys()


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        (
            dict(num_images=None),
            r'^epochs=6: .*; expected num_images and .*num_labeled, or',
        ),
        (dict(train_set=dict(type='SemiSegDataset')), '^epochs=6: .*; expected num_images and'),
        (
            dict(num_images=16),
            r'num_labeled=7: leaves 9 of 16 images unlabelled; exp',
        ),
        (dict(num_images='x'), "^num_images='x': expected a whole number from 1$"),
        (dict(train_set=dict(num_labeled=[1])), r'num_labeled=\[1\]: expected a whole number'),
    ],
)
def test_epochs_of_unknown_length_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        counted(**settings)


@pytest.mark.parametrize(
    ('scheduler', 'end'),
    [
        (dict(type='PolyLR', by_epoch=False), 8),
        (dict(type='PolyLR', by_epoch=False, end=3), 3),
        (dict(type='PolyLR', by_epoch=True), None),
        (dict(type='CosineAnnealingLR', by_epoch=False, T_max=5), None),
    ],
)
def test_a_scheduler_without_end_ends_with_the_training(scheduler, end):
    alone = derived(train_cfg=dict(max_iters=8), param_scheduler=scheduler)
    assert alone.param_scheduler.get('end') == end
    listed = derived(train_cfg=dict(max_iters=8), param_scheduler=[scheduler])
    assert listed.param_scheduler[0].get('end') == end


def test_a_step_without_the_name_of_a_type_is_left_to_the_checks():
    pipeline = [dict(type=['Resize']), dict(type='Resize')]
    config = derived(image_size=(4, 2), test_pipeline=pipeline)
    assert 'scale' not in config.test_pipeline[0]
    assert config.test_pipeline[1].scale == (4, 2)


def test_sizes_that_steps_leave_out_are_those_of_the_data():
    steps = [
        dict(type='Resize'),
        dict(type='RandomResize', ratio_range=(0.5, 2.0)),
        dict(type='RandomCrop'),
    ]
    own = [
        dict(type='Resize', scale=(1, 1)),
        dict(type='RandomResize', scale=(2, 2)),
        dict(type='RandomCrop', crop_size=(3, 3)),
        dict(type='Resize', scale_factor=0.5),
        dict(type='RandomFlip'),
    ]
    settings = dict(
        image_size=(40, 30),
        crop_size=(20, 24),
        model=dict(data_preprocessor=dict(type='BranchPreprocessor')),
        train_dataloader=dict(dataset=dict(labeled=dict(pipeline=steps))),
        val_dataloader=dict(dataset=dict(pipeline=own)),
        test_dataloader=dict(dataset=dict(datasets=[dict(pipeline=[dict(type='Resize')])])),
        test_pipeline=[dict(type='Resize')],
    )
    config = derived(**settings)
    resize, random_resize, crop = config.train_dataloader.dataset.labeled.pipeline
    assert resize.scale == random_resize.scale == (40, 30)
    assert crop.crop_size == config.model.data_preprocessor.size == (20, 24)
    assert Config(dict(pipeline=own)).pipeline == config.val_dataloader.dataset.pipeline
    assert config.test_dataloader.dataset.datasets[0].pipeline == config.test_pipeline
    assert config.test_pipeline[0].scale == (40, 30)
    again = config.to_dict()
    derive(config)
    assert config.to_dict() == again


@pytest.mark.parametrize(
    'model',
    [
        dict(data_preprocessor=dict(type='BranchPreprocessor', size=(8, 8))),
        dict(data_preprocessor=dict(type='SegDataPreProcessor')),
        dict(data_preprocessor=dict(type='BranchPreprocessor'), domains=dict(a={})),
    ],
)
def test_a_preprocessor_with_a_size_of_its_own_keeps_it(model):
    config = derived(crop_size=(20, 24), model=model)
    assert config.model.to_dict() == model


def test_workers_persist_only_where_there_are_some():
    loaders = {
        f'{split}_dataloader': dict(num_workers=number, persistent_workers=True)
        for split, number in (('train', 0), ('val', 2), ('test', 0))
    }
    config = derived(**loaders)
    persistent = [config[name].persistent_workers for name in loaders]
    assert persistent == [False, True, False]


def test_a_hook_that_is_none_is_removed_unless_mmengine_would_add_it():
    hook = dict(type='TeacherHook')
    config = derived(default_hooks=dict(teacher=None, ramp_up=hook, timer=None, logger=None))
    assert config.default_hooks.to_dict() == dict(ramp_up=hook, timer=None, logger=None)


def test_a_size_named_once_may_be_an_option(caplog):
    options = {'crop_size': [96, 64], 'train_cfg.max_iters': 7}
    config = load_config('cct_r50_voc_1464', options)
    assert config.model.data_preprocessor.size == (96, 64)
    steps = config.train_dataloader.dataset.labeled.pipeline
    assert [step.crop_size for step in steps if step.type == 'RandomCrop'] == [(96, 64)]
    assert config.train_cfg.max_iters == config.param_scheduler.end == 7
    assert 'a new key' not in caplog.text  # a length that follows from others has a key, too


LOADER = dict(type='LoadChannels', channels=(0, 1, 2, 3), value_range=(0, 4095))


def loading(loader, **model):
    step = dict(type='LoadImageFromFile', to_float32=True, backend_args=dict(backend='x'))
    nested = dict(type='TestTimeAug', transforms=[[dict(type='LoadImageFromFile')]])
    return derived(
        image_loader=loader,
        model=dict(type='EncoderDecoder', backbone=dict(type='ResNet'), **model),
        test_pipeline=[step, nested],
        train_dataloader=dict(dataset=dict(labeled=dict(pipeline=[step]))),
    )


def test_one_loader_serves_all_pipelines_and_the_backbone():
    config = loading(LOADER)
    first, nested = config.test_pipeline
    assert first == dict(**LOADER, backend_args=dict(backend='x'))
    assert nested.transforms[0][0] == LOADER
    assert config.train_dataloader.dataset.labeled.pipeline[0].type == 'LoadChannels'
    backbone = dict(type='MultiChannelBackbone', in_channels=4, backbone=dict(type='ResNet'))
    assert config.model.backbone == backbone
    derive(config)  # as of a config that a training dumped
    assert config.model.backbone == backbone


def test_three_channels_leave_the_backbone_alone():
    assert loading(dict(type='LoadChannels', channels=(3, 1, 0))).model.backbone.type == 'ResNet'


@pytest.mark.parametrize('name', ['mean', 'std'])
def test_a_mean_of_other_channels_is_refused(name):
    with pytest.raises(UserError, match=rf'^model.data_preprocessor.{name}: 3 values; expected 4'):
        loading(LOADER, data_preprocessor={name: [1.0, 2.0, 3.0]})
