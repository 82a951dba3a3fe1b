"""A tiny classifier and a few images with image-level labels and masks."""

import pytest
import tiny_weak


@pytest.fixture
def weak(tmp_path, monkeypatch):
    """The config, its checkpoint and data, in a folder that is the working directory."""
    pytest.importorskip('mmpretrain', reason='the classifier is made of its parts (extra `weak`)')
    monkeypatch.chdir(tmp_path)
    return tiny_weak.make_weak(tmp_path)
