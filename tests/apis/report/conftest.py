"""Finished trainings that reports read."""

import shutil

import pytest
from mmengine.config import Config


@pytest.fixture
def changed(trained, tmp_path):
    """Copies the trained run and changes the config in it."""

    def change(edit):
        copy = shutil.copytree(trained.work_dir, tmp_path / 'changed')
        config = Config.fromfile(copy / 'tiny.py')
        edit(config)
        config.dump(copy / 'tiny.py')
        return copy

    return change
