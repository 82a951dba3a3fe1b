"""The tiny config with its data on disk, trained and given to the tools: what whole runs share."""

import copy
import importlib.util
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import tiny
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner

from mmseg_cct.apis.prepare import Request
from mmseg_cct.apis.train import prepare_training
from mmseg_cct.apis.train import train as train_prepared
from mmseg_cct.engine.safe_loading import load_data

SHARED = Path(__file__).parent
PROJECT = SHARED.parents[1]
CLASSES = ('ground', 'thing', 'other')
PALETTE = [[10, 20, 30], [200, 0, 0], [0, 200, 0]]
MAX_ITERS = 6
LOSS_WEIGHT = 'auxiliary_head.loss_consistency.loss_weight'

SGD = dict(type='SGD', lr=0.05, momentum=0.9, weight_decay=1e-4)
LOAD_IMAGE = dict(type='LoadImageFromFile')
LOAD_MASK = dict(type='LoadAnnotations')
AUGMENT = [
    dict(type='RandomResize', scale=(40, 32), ratio_range=(0.8, 1.5), keep_ratio=True),
    dict(type='RandomCrop', crop_size=(32, 32)),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackSegInputs'),
]
TEST_PIPELINE = [LOAD_IMAGE, LOAD_MASK, dict(type='PackSegInputs')]
TTA_TRANSFORMS = [
    [dict(type='Resize', scale_factor=factor, keep_ratio=True) for factor in (0.75, 1.0)],
    [dict(type='RandomFlip', prob=prob, direction='horizontal') for prob in (0.0, 1.0)],
    [LOAD_MASK],
    [dict(type='PackSegInputs')],
]

_runs = itertools.count()


def experiment():
    """A name of its own: mmengine keeps one logger and message hub per name and second."""
    return f'run{next(_runs)}'


def contents(folder, pattern='**/*'):
    """What each file and each link in a folder holds."""
    found = {}
    for path in folder.glob(pattern):
        if path.is_symlink() or path.is_file():
            held = os.readlink(path) if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(folder))] = held
    return found


class MakesFolder:
    """Pickles as a call that leaves the folder `ran` behind."""

    def __reduce__(self):
        return os.mkdir, ('ran',)


def write_photos(folder, sizes, seed=0):
    """Smooth pictures by name, of these heights and widths."""
    rng = np.random.default_rng(seed)
    for name, (height, width) in sizes.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pixels = cv2.resize(rng.integers(0, 256, (6, 8, 3), np.uint8), (width, height))
        cv2.imwrite(str(folder / name), pixels)
    return folder


def write_images(root, num_labeled=3):
    """Smooth pictures and masks of 40×32, in images, masks, val_images and val_masks."""
    rng = np.random.default_rng(0)
    for letter, count, prefix in (('l', num_labeled, ''), ('u', 5, ''), ('v', 3, 'val_')):
        for kind in ('images', 'masks'):
            (root / f'{prefix}{kind}').mkdir(parents=True, exist_ok=True)
        for index in range(count):
            image = cv2.resize(rng.integers(0, 256, (6, 8, 3), np.uint8), (40, 32))
            mask = rng.integers(0, 3, (4, 5), np.uint8).repeat(8, 0).repeat(8, 1)
            cv2.imwrite(f'{root}/{prefix}images/{letter}{index}.png', image)
            if letter != 'u':
                cv2.imwrite(f'{root}/{prefix}masks/{letter}{index}.png', mask)


def folder_set(root, subset, pipeline, prefix='', **settings):
    """What `write_images` has written."""
    return dict(
        type='FolderDataset',
        data_root=str(root),
        image_dir=f'{prefix}images',
        mask_dir=f'{prefix}masks',
        subset=subset,
        pipeline=list(pipeline),
        # packing calls the garbage collector, which takes most of a test's time
        serialize_data=False,
        **dict(dict(classes=CLASSES, palette=PALETTE), **settings),
    )


def pairs(root, augment=AUGMENT, **settings):
    """The labelled and unlabelled images."""
    return dict(
        type='SemiSegDataset',
        labeled=folder_set(root, 'labeled', [LOAD_IMAGE, LOAD_MASK, *augment], **settings),
        unlabeled=folder_set(root, 'unlabeled', [LOAD_IMAGE, *augment], **settings),
    )


def validated(root, **settings):
    return folder_set(root, 'labeled', TEST_PIPELINE, 'val_', **settings)


def cct_config(root, **model):
    """A config for the tools; the perturbations are the paper's seven."""
    val = dict(batch_size=1, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False))
    val['dataset'] = validated(root)
    return Config(
        dict(
            default_scope='mmseg',
            custom_imports=dict(imports=['mmseg_cct.plugin'], allow_failed_imports=False),
            model=tiny.model_config(**model),
            test_pipeline=TEST_PIPELINE,
            tta_pipeline=[LOAD_IMAGE, dict(type='TestTimeAug', transforms=TTA_TRANSFORMS)],
            tta_model=dict(type='SegTTAModel'),
            train_dataloader=dict(
                batch_size=2, num_workers=0, sampler=dict(type='PairSampler'), dataset=pairs(root)
            ),
            val_dataloader=val,
            test_dataloader=copy.deepcopy(val),
            val_evaluator=dict(type='IoUMetric', iou_metrics=['mIoU']),
            test_evaluator=dict(type='IoUMetric', iou_metrics=['mIoU']),
            train_cfg=dict(type='IterBasedTrainLoop', max_iters=MAX_ITERS, val_interval=100),
            val_cfg=dict(type='ValLoop'),
            test_cfg=dict(type='TestLoop'),
            optim_wrapper=dict(type='OptimWrapper', optimizer=SGD),
            param_scheduler=[dict(type='PolyLR', power=0.9, by_epoch=False, end=MAX_ITERS)],
            default_hooks=dict(
                logger=dict(type='MainProcessLoggerHook', interval=1, log_metric_by_epoch=False),
                checkpoint=dict(type='DurableCheckpointHook', by_epoch=False, interval=2),
                preflight=dict(type='PreflightHook'),
                findings=dict(type='FindingsHook'),
                resume=dict(type='ResumeHook'),
                nonfinite_loss=dict(type='NonFiniteLossHook'),
                statistics=dict(type='SyncStatisticsHook'),
                visualization=dict(type='SegVisualizationHook'),
            ),
            custom_hooks=[
                dict(type='IterationSeedHook'),
                dict(type='RampUpHook', attribute=LOSS_WEIGHT, fraction=0.8),
            ],
            randomness=dict(seed=0),
            sync_bn='torch',
            visualizer=dict(type='SegLocalVisualizer', vis_backends=[dict(type='LocalVisBackend')]),
            log_processor=dict(by_epoch=False, window_size=1),
            log_level='ERROR',
        )
    )


# Another data set for the same images: two classes more.
SECOND = dict(classes=tuple('abcde'), palette=[[n, n + 1, n + 2] for n in range(5)])


def multi_domain_config(root, **model):
    """The config for two domains; the second has smaller crops, too."""
    config = cct_config(root)
    smaller = [dict(type='Resize', scale=(40, 24)), *AUGMENT[2:]]
    config.model = tiny.multi_domain_config(**model)
    config.train_dataloader.sampler = dict(type='MultiDomainSampler', batch_size=2)
    config.train_dataloader.dataset = dict(
        type='MultiDomainDataset',
        domains=dict(first=pairs(root), second=pairs(root, smaller, **SECOND)),
    )
    for part in ('val', 'test'):
        config[f'{part}_dataloader'].dataset = dict(
            type='MultiDomainConcatDataset',
            domains=dict(first=validated(root), second=validated(root, **SECOND)),
        )
        config[f'{part}_evaluator'] = dict(type='MultiDomainIoUMetric', iou_metrics=['mIoU'])
    config.tta_pipeline = dict.fromkeys(('first', 'second'), config.tta_pipeline)
    config.custom_hooks[1].attribute = f'domains.*.{LOSS_WEIGHT}'
    config.visualizer.type = 'MultiDomainVisualizer'
    config.find_unused_parameters = True
    return config


class Recorder(Hook):
    """Keeps what each iteration logged, and kills the run where it is told to."""

    priority = 'VERY_LOW'

    def __init__(self, kill_after=None):
        self.kill_after = kill_after
        self.logged = {}

    def before_run(self, runner):
        self.runner = runner

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.logged[runner.iter] = {key: value.item() for key, value in outputs.items()}
        if runner.iter + 1 == self.kill_after:
            raise KeyboardInterrupt


def run(config, work_dir, recorder, hooks=(), **changes):
    """Trains until the recorder kills the run, if it does; gives the recorder and the weights."""
    config.merge_from_dict(changes)
    config.update(work_dir=str(work_dir), experiment_name=experiment())
    runner = Runner.from_cfg(config)
    for hook in (*hooks, recorder):
        runner.register_hook(hook)
    try:
        runner.train()
    except KeyboardInterrupt:
        assert recorder.kill_after is not None
    # ends the workers at once; left to the garbage collector, each of them takes five seconds
    runner.train_loop.dataloader_iterator = None
    return recorder, {name: value.clone() for name, value in runner.model.state_dict().items()}


def run_tool(name, *args):
    """Runs a tool's main() as on the command line and returns what it returns or exits with."""
    path = PROJECT / 'tools' / f'{name}.py'
    spec = importlib.util.spec_from_file_location(f'tool_{name}', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    args = [str(arg) for arg in args]
    if name in ('train', 'test'):
        args += ['--cfg-options', f'experiment_name={experiment()}']
    argv, sys.argv = sys.argv, [str(path), *args]
    try:
        return module.main()
    finally:
        sys.argv = argv


def scalars(work_dir):
    """What all runs in a work directory logged: the lines of each iteration, in time's order."""
    logged = {}
    for path in sorted(Path(work_dir).glob('*/vis_data/scalars.json')):
        for line in map(json.loads, path.read_text().splitlines()):
            if 'loss' in line:
                logged.setdefault(line['iter'], []).append(line)
    return logged


def free_port():
    """A port for a distributed run; torch takes no 0 here."""
    with socket.create_server(('127.0.0.1', 0)) as sock:
        return str(sock.getsockname()[1])


class Run:
    """The tiny config and its data in a folder, trained and given to the tools."""

    tools = PROJECT / 'tools'
    palette = PALETTE
    run = staticmethod(run_tool)
    scalars = staticmethod(scalars)

    def __init__(self, folder, build=cct_config):
        self.folder, self.data, self.file = folder, folder / 'data', folder / 'tiny.py'
        self.images = self.data / 'images'
        write_images(self.data)
        self.config = build(self.data)
        self.write()

    def write(self):
        self.config.dump(self.file)
        return self.file

    def train(self, work_dir='work', options=None, **kwargs):
        options = {'experiment_name': experiment(), **(options or {})}
        work_dir = str(self.folder / work_dir)
        prepared = prepare_training(
            str(self.file), Request(work_dir=work_dir, options=options, **kwargs)
        )
        train_prepared(prepared)
        return prepared

    def trained(self):
        self.train()
        self.work_dir = self.folder / 'work'
        self.checkpoint = self.work_dir / f'iter_{MAX_ITERS}.pth'
        self.logged = self.scalars(self.work_dir)
        return self

    def tool(self, name, *args):
        """The exit code of a tool."""
        try:
            return run_tool(name, *args) or 0
        except SystemExit as end:
            return end.code or 0

    def load(self, path):
        return load_data(path, str(path))

    def shell(self, *command):
        """Runs a command in a process of its own, in the folder."""
        env = {
            **os.environ, 'PYTHONPATH': f'{PROJECT}{os.pathsep}{SHARED}', 'OMP_NUM_THREADS': '1',
            'PYTHONWARNINGS': 'ignore', 'PORT': free_port(),
        }  # fmt: skip
        env['PATH'] = os.path.dirname(sys.executable) + os.pathsep + env['PATH']
        # A group of its own, so that the workers of a distributed run end with it.
        process = subprocess.Popen(
            [str(part) for part in command], cwd=self.folder, env=env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        try:
            out, err = process.communicate(timeout=240)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        return SimpleNamespace(returncode=process.returncode, stdout=out, stderr=err)
