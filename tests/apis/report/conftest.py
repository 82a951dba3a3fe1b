"""Finished trainings that reports and tools read."""

import shutil

import pytest
from mmengine.config import Config
from mmengine.runner import Runner

from mmseg_cct.config.load import load_config

TINY = dict(
    train_cfg=dict(max_iters=2, val_interval=2),
    param_scheduler=dict(end=2),
    default_hooks=dict(logger=dict(interval=1)),
    visualizer=dict(vis_backends=[dict(type='LocalVisBackend')]),
    log_level='ERROR',
    val_dataloader=dict(dataset=dict(count=2)),
    test_dataloader=dict(dataset=dict(count=3)),
)


@pytest.fixture(scope='session')
def compared(slow, tmp_path_factory):
    """Directories of a baseline and a CCT run of two iterations."""
    root = tmp_path_factory.mktemp('runs')
    for name in ('supervised', 'cct'):
        config = load_config('demo/cct_shapes', dict(method=name))
        config.merge_from_dict(TINY)
        config.train_dataloader.batch_size = 2
        config.train_dataloader.dataset.labeled.count = 2
        if name == 'cct':
            config.train_dataloader.dataset.unlabeled.count = 3
        config.work_dir = str(root / name)
        config.experiment_name = f'report_{name}'
        Runner.from_cfg(config).train()
    return root


@pytest.fixture
def changed(compared, tmp_path):
    """Copies the CCT run and changes the config in it."""

    def change(edit):
        copy = tmp_path / 'changed'
        shutil.copytree(compared / 'cct', copy)
        (file,) = copy.glob('*.py')
        config = Config.fromfile(file)
        edit(config)
        config.dump(file)
        return copy

    return change
