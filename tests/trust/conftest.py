"""A CCT config small enough to train in a second, its data on disk, and the tools run on it."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import world
from mmengine.config import Config

from mmseg_cct.apis.train import prepare_training, train
from mmseg_cct.engine.safe_loading import load_data

CLASSES = ('ground', 'thing', 'other')
MAX_ITERS = 6

LOAD_IMAGE = dict(type='LoadImageFromFile')
LOAD_MASK = dict(type='LoadAnnotations')
AUGMENT = [
    dict(type='RandomResize', scale=(40, 32), ratio_range=(0.8, 1.5), keep_ratio=True),
    dict(type='RandomCrop', crop_size=(32, 32)),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackSegInputs'),
]


def write_images(root, num_labeled=3, num_unlabeled=5, num_val=3):
    """Smooth pictures and masks of 40×32, in images, masks, val_images and val_masks."""
    rng = np.random.default_rng(0)
    for letter, count, prefix in (
        ('l', num_labeled, ''),
        ('u', num_unlabeled, ''),
        ('v', num_val, 'val_'),
    ):
        for index in range(count):
            world.write_scene(root, f'{letter}{index}', rng, prefix, with_mask=letter != 'u')


def config_of(root, **model):
    """A config for the tools; the perturbations are the paper's seven."""

    def folder(subset, prefix='', pipeline=()):
        return dict(
            type='FolderDataset',
            data_root=str(root),
            image_dir=f'{prefix}images',
            mask_dir=f'{prefix}masks',
            classes=CLASSES,
            subset=subset,
            pipeline=list(pipeline),
            # packing calls the garbage collector, which takes most of a test's time
            serialize_data=False,
        )

    val = dict(
        batch_size=1,
        num_workers=0,
        sampler=dict(type='DefaultSampler', shuffle=False),
        dataset=folder('labeled', 'val_', [LOAD_IMAGE, LOAD_MASK, dict(type='PackSegInputs')]),
    )
    return Config(
        dict(
            default_scope='mmseg',
            custom_imports=dict(imports=['mmseg_cct.plugin'], allow_failed_imports=False),
            model=tiny.model_config(**model),
            train_dataloader=dict(
                batch_size=2,
                num_workers=0,
                sampler=dict(type='PairSampler'),
                dataset=dict(
                    type='SemiSegDataset',
                    labeled=folder('labeled', pipeline=[LOAD_IMAGE, LOAD_MASK, *AUGMENT]),
                    unlabeled=folder('unlabeled', pipeline=[LOAD_IMAGE, *AUGMENT]),
                ),
            ),
            val_dataloader=val,
            test_dataloader=copy.deepcopy(val),
            val_evaluator=dict(type='IoUMetric', iou_metrics=['mIoU']),
            test_evaluator=dict(type='IoUMetric', iou_metrics=['mIoU']),
            train_cfg=dict(type='IterBasedTrainLoop', max_iters=MAX_ITERS, val_interval=100),
            val_cfg=dict(type='ValLoop'),
            test_cfg=dict(type='TestLoop'),
            optim_wrapper=dict(
                type='OptimWrapper',
                optimizer=dict(type='SGD', lr=0.05, momentum=0.9, weight_decay=1e-4),
            ),
            param_scheduler=[
                dict(type='PolyLR', power=0.9, by_epoch=False, begin=0, end=MAX_ITERS)
            ],
            default_hooks=dict(
                logger=dict(type='LoggerHook', interval=1, log_metric_by_epoch=False),
                checkpoint=dict(type='DurableCheckpointHook', by_epoch=False, interval=2),
                nonfinite_loss=dict(type='NonFiniteLossHook'),
            ),
            custom_hooks=[
                dict(type='IterationSeedHook'),
                dict(
                    type='RampUpHook',
                    attribute='auxiliary_head.loss_consistency.loss_weight',
                    fraction=0.8,
                ),
            ],
            randomness=dict(seed=0),
            sync_bn='torch',
            visualizer=dict(type='SegLocalVisualizer', vis_backends=[dict(type='LocalVisBackend')]),
            log_processor=dict(by_epoch=False, window_size=1),
            log_level='ERROR',
        )
    )


def load_safely(path):
    """The content of a checkpoint, which is data alone."""
    return load_data(path, str(path))


def make_run(folder, project_root):
    """Data and a config in a folder, and functions that train it and run the tools."""
    write_images(folder / 'data')
    config = config_of(folder / 'data')
    file = folder / 'tiny.py'
    config.dump(file)

    def run_train(work_dir='work', options=None, **kwargs):
        """Trains as tools/train.py does."""
        options = {'experiment_name': world.experiment(), **(options or {})}
        prepared = prepare_training(
            str(file), work_dir=str(folder / work_dir), options=options, **kwargs
        )
        train(prepared)
        return prepared

    def tool(name, *args):
        """Runs a tool's main() as on the command line and returns its exit code."""
        try:
            return world.run_tool(name, *args) or 0
        except SystemExit as end:
            return end.code or 0

    def write():
        config.dump(file)
        return file

    return SimpleNamespace(
        folder=folder,
        data=folder / 'data',
        config=config,
        file=file,
        train=run_train,
        tool=tool,
        write=write,
        tools=project_root / 'tools',
        scalars=world.scalars,
        load=load_safely,
    )


@pytest.fixture
def cct(tmp_path, project_root, monkeypatch):
    """A fresh config and data in a folder of its own, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    return make_run(tmp_path, project_root)


@pytest.fixture(scope='session')
def trained(tmp_path_factory, project_root):
    """The tiny config after an uninterrupted training; tests read it and write elsewhere."""
    run = make_run(tmp_path_factory.mktemp('trained'), project_root)
    run.train()
    run.work_dir = run.folder / 'work'
    run.checkpoint = run.work_dir / f'iter_{MAX_ITERS}.pth'
    run.logged = world.scalars(run.work_dir)
    return run
