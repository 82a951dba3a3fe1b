"""Photos to choose from."""

import shutil

import pytest
import world


@pytest.fixture
def photos(trained, tmp_path):
    """Ten smooth images in two folders, and a labelled one under another name."""
    names = [f'{"a/" if index % 2 else ""}{index}.png' for index in range(10)]
    folder = world.write_photos(tmp_path / 'photos', dict.fromkeys(names, (40, 56)), seed=1)
    shutil.copy(trained.images / 'l2.png', folder / 'known.png')
    return folder
