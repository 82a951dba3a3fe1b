"""A CCT config small enough to train in a second, its data on disk, and the tools run on it."""

from types import SimpleNamespace

import pytest
import world

from mmseg_cct.apis.train import prepare_training, train
from mmseg_cct.engine.safe_loading import load_data

MAX_ITERS = world.MAX_ITERS


def load_safely(path):
    """The content of a checkpoint, which is data alone."""
    return load_data(path, str(path))


def make_run(folder, project_root):
    """Data and a config in a folder, and functions that train it and run the tools."""
    world.write_images(folder / 'data')
    config = world.cct_config(folder / 'data')
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
