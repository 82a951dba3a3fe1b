"""What the tools of this room read."""

import pytest
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
