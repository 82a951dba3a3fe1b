"""Whole trainings beside public code: what is mended in memory, and how the figures come about."""

import json
import random
import sys
from argparse import Namespace
from importlib import import_module

import _public_loops as loops
import public_training
import pytest
import torch
from _public_code import mend
from PIL import Image, ImageOps


@pytest.fixture
def imports(monkeypatch):
    """What is imported from a clone goes again after the test."""
    monkeypatch.setattr(sys, 'path', list(sys.path))
    monkeypatch.setattr(sys, 'path_hooks', list(sys.path_hooks))
    yield
    for name in [name for name in sys.modules if name.partition('.')[0] == 'some_clone']:
        del sys.modules[name]


def test_a_clone_is_mended_in_memory(imports, tmp_path):
    file = tmp_path / 'some_clone/loop.py'
    file.parent.mkdir()
    file.write_text('RATE = 1 / 10\n')
    mend(str(tmp_path), {'some_clone/loop.py': {'/ 10': '* {rate}'}}, rate=4)
    assert import_module('some_clone.loop').RATE == 4
    assert file.read_text() == 'RATE = 1 / 10\n'
    assert [path.name for path in file.parent.iterdir()] == ['loop.py']  # no compiled one


def test_another_commit_is_named(imports, tmp_path):
    (tmp_path / 'some_clone.py').write_text('RATE = 0.1\n')
    mend(str(tmp_path), {'some_clone.py': {'/ 10': '* 4'}})
    with pytest.raises(SystemExit, match=r"some_clone\.py: no '/ 10'; expected the commit"):
        import_module('some_clone')


def test_crops_and_boxes_of_unimatch_become_rectangles():
    box = torch.zeros(160, 160)
    box[:80, 40:80] = 1
    transform = Namespace(ImageOps=ImageOps, obtain_cutmix_box=lambda size, p: box)
    loops._allow_rectangles(transform, 112, 160)
    assert transform.obtain_cutmix_box(160, p=0.5).shape == (112, 160)
    assert transform.obtain_cutmix_box(160, p=0.5).mean() == box.mean()

    random.seed(0)
    image, mask = transform.crop(Image.new('L', (200, 90), 7), Image.new('L', (200, 90)), 160, 254)
    assert image.size == mask.size == (160, 112)
    assert mask.getpixel((0, 89)) == 0 and mask.getpixel((0, 90)) == 254


def test_a_validation_is_not_counted_as_a_step():
    figures = dict(
        steps=[10.0, 11.0, 12.0, 33.0],  # the last one after 20 s of validation
        validations=[dict(step=3, begin=12.0, end=32.0, miou=50.0)],
        cpu=34.0,
        peak=2**20,
    )
    run = public_training.summarise(figures)
    assert run['step'] == 1.0 and run['quartiles'] == [1.0, 1.0]
    assert run['validation'] == 20.0
    assert public_training.reaches(run, 50.0) == (3, 32.0)
    assert public_training.reaches(run, 50.1) is None


CHILD = """
import json, os, sys
from pathlib import Path
folder = Path(sys.argv[1], sys.argv[-1])
if folder.name == 'broken':
    sys.exit('it broke')
folder.joinpath('partial.json').write_text(json.dumps(os.environ['OMP_NUM_THREADS']))
"""


def test_runs_take_turns_until_all_have_ended(monkeypatch, tmp_path):
    script = tmp_path / 'child.py'
    script.write_text(CHILD)
    monkeypatch.setattr(public_training, '__file__', str(script))
    monkeypatch.setattr(sys, 'argv', ['benchmark', str(tmp_path)])
    options = Namespace(out=str(tmp_path), turn=0.05)
    public_training.by_turns(['a', 'b'], options)
    for name in 'ab':
        assert json.loads((tmp_path / name / 'figures.json').read_text()) == '1'
    with pytest.raises(SystemExit, match=r'broken failed; see .*/broken/log\.txt'):
        public_training.by_turns(['broken'], options)
    assert (tmp_path / 'broken/log.txt').read_text() == 'it broke\n'
    assert not (tmp_path / 'broken/figures.json').exists()
