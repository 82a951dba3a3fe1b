"""A config small enough to train in a second, its data, and the tools run in this process."""

import os
import signal
import socket
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import world
from PIL import Image

CLASSES = ('sky', 'road', 'car')
PALETTE = [[10, 20, 30], [200, 0, 0], [0, 200, 0]]

CONFIG = """
default_scope = 'mmseg'
custom_imports = dict(imports=['mmseg_cct.plugin'], allow_failed_imports=False)
randomness = dict(seed=0)
model = dict(
    type='EncoderDecoder',
    data_preprocessor=dict(
        type='SegDataPreProcessor', size=(32, 32), pad_val=0, seg_pad_val=255,
        mean=[127.0] * 3, std=[60.0] * 3, bgr_to_rgb=True),
    backbone=dict(
        type='ResNet', depth=18, base_channels=4, strides=(1, 1, 2, 1), dilations=(1, 1, 1, 2),
        norm_cfg=dict(type='BN'), norm_eval=False),
    decode_head=dict(
        type='FCNHead', in_channels=32, channels=8, num_convs=1, num_classes=3,
        norm_cfg=dict(type='BN'), loss_decode=dict(type='CrossEntropyLoss')),
    test_cfg=dict(mode='whole'))
train_pipeline = [
    dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'),
    dict(type='Resize', scale=(32, 32)), dict(type='PackSegInputs')]
test_pipeline = [
    dict(type='LoadImageFromFile'), dict(type='Resize', scale=(48, 48), keep_ratio=True),
    dict(type='LoadAnnotations'), dict(type='PackSegInputs')]
tta_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='TestTimeAug', transforms=[
        [dict(type='Resize', scale_factor=s, keep_ratio=True) for s in (0.75, 1.0)],
        [dict(type='RandomFlip', prob=p, direction='horizontal') for p in (0.0, 1.0)],
        [dict(type='LoadAnnotations')], [dict(type='PackSegInputs')]])]
tta_model = dict(type='SegTTAModel')
dataset = dict(
    type='FolderDataset', data_root='DATA', image_dir='images', mask_dir='masks',
    classes=CLASSES, palette=PALETTE)
train_dataloader = dict(
    batch_size=2, num_workers=0, sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(pipeline=train_pipeline, **dataset))
val_dataloader = dict(
    batch_size=1, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(pipeline=test_pipeline, **dataset))
test_dataloader = val_dataloader
val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator
train_cfg = dict(type='IterBasedTrainLoop', max_iters=2, val_interval=100)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01))
param_scheduler = [dict(type='PolyLR', power=0.9, begin=0, end=2, by_epoch=False)]
default_hooks = dict(
    logger=dict(type='LoggerHook', interval=1, log_metric_by_epoch=False),
    param_scheduler=dict(type='ParamSchedulerHook'),
    checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=1),
    preflight=dict(type='PreflightHook'),
    resume=dict(type='ResumeHook'),
    visualization=dict(type='SegVisualizationHook'))
log_processor = dict(by_epoch=False)
visualizer = dict(
    type='SegLocalVisualizer', vis_backends=[dict(type='LocalVisBackend')])
sync_bn = 'torch'
"""


def _free_port():
    """A port for a distributed run; torch takes no 0 here."""
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        return sock.getsockname()[1]


def make_run(folder, project_root):
    """A config in a folder with four images and masks, and functions that run the tools on it."""
    rng = np.random.default_rng(0)
    for kind in ('images', 'masks'):
        (folder / 'data' / kind).mkdir(parents=True)
    for index in range(4):
        labels = np.repeat(rng.integers(0, 3, (4, 4)), 10, 0).repeat(12, 1).astype(np.uint8)
        image = np.array(PALETTE, np.uint8)[labels]
        Image.fromarray(labels).save(folder / 'data' / 'masks' / f'{index}.png')
        Image.fromarray(image).save(folder / 'data' / 'images' / f'{index}.jpg')
    text = CONFIG.replace('DATA', str(folder / 'data'))
    text = text.replace('=CLASSES', f'={CLASSES}').replace('=PALETTE', f'={PALETTE}')
    config = folder / 'tiny.py'
    config.write_text(text)

    def shell(*command):
        """Runs a command in a process of its own, in the folder."""
        env = {
            **os.environ, 'PYTHONPATH': str(project_root), 'OMP_NUM_THREADS': '1',
            'PYTHONWARNINGS': 'ignore', 'PORT': str(_free_port()),
        }  # fmt: skip
        # `python` in the scripts is the one that runs the tests.
        env['PATH'] = os.path.dirname(sys.executable) + os.pathsep + env['PATH']
        # A group of its own, so that the workers of a distributed run end with it.
        process = subprocess.Popen(
            [str(part) for part in command], cwd=folder, env=env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        try:
            out, err = process.communicate(timeout=240)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        return SimpleNamespace(returncode=process.returncode, stdout=out, stderr=err)

    return SimpleNamespace(
        folder=folder, config=config, images=folder / 'data' / 'images',
        run=world.run_tool, shell=shell,
        tools=project_root / 'tools', palette=PALETTE,
    )  # fmt: skip


@pytest.fixture
def tiny(tmp_path, project_root, monkeypatch):
    """A fresh config and data set in a folder of its own, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    return make_run(tmp_path, project_root)


@pytest.fixture(scope='session')
def new_run(project_root):
    """Makes a fresh config and data set in a folder."""
    return lambda folder: make_run(folder, project_root)


@pytest.fixture(scope='session')
def trained(tmp_path_factory, project_root):
    """The tiny config after two iterations; tests read what it wrote and write elsewhere."""
    folder = tmp_path_factory.mktemp('trained')
    tiny = make_run(folder, project_root)
    tiny.work_dir = folder / 'work'
    tiny.run('train', tiny.config, '--work-dir', tiny.work_dir)
    tiny.checkpoint = tiny.work_dir / 'iter_2.pth'
    return tiny
