"""What the tools of this room read."""

import shutil

import cv2
import numpy as np
import pytest
from compared import changed, compared  # noqa: F401
from mmengine.runner.checkpoint import CheckpointLoader


@pytest.fixture
def checkpoints_read(monkeypatch):
    """Names of the checkpoints that are read, each as often as it is."""
    names, load = [], CheckpointLoader.load_checkpoint
    monkeypatch.setattr(
        CheckpointLoader,
        'load_checkpoint',
        lambda name, *args, **kwargs: names.append(name) or load(name, *args, **kwargs),
    )
    return names


@pytest.fixture
def photos(trained, tmp_path):
    """Ten smooth images in two folders, and a labelled one under another name."""
    rng = np.random.default_rng(1)
    folder = tmp_path / 'photos'
    (folder / 'a').mkdir(parents=True)
    for index in range(10):
        image = cv2.resize(rng.integers(0, 256, (6, 8, 3), np.uint8), (56, 40))
        cv2.imwrite(str(folder / ('a' if index % 2 else '') / f'{index}.png'), image)
    shutil.copy(trained.images / 'l2.png', folder / 'known.png')
    return folder
