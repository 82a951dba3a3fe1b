"""Rounds of labelling by the commands that tools print, in the state in which they print them.

Names hold blanks, quotes and what a shell would run.
"""

import json
import shlex
import shutil
from itertools import takewhile

import numpy as np
import pytest
from PIL import Image
from world import run_tool

from mmseg_cct.annotations.class_table import read_table
from mmseg_cct.annotations.export import export_masks
from mmseg_cct.engine.labels_record import read_labels


@pytest.fixture
def follow(tmp_path, monkeypatch, capsys):
    """Runs a printed line, perhaps with options of one's own; gives the lines printed then."""
    monkeypatch.chdir(tmp_path)

    def run(line, *options):
        words = [dict(IMAGES='photos', CORRECTED='corrected/coco.json').get(w, w) for w in line]
        if words[0] == 'cp':
            return shutil.copy(*words[1:])
        name, *arguments = words[1 if words[0] == 'mmseg-cct' else 3 :]
        capsys.readouterr()
        assert not run_tool(name.replace('-', '_'), *arguments, *options), line
        _, _, following = capsys.readouterr().out.rpartition('Next:\n')
        indented = takewhile(lambda text: text.startswith('  '), following.splitlines())
        return list(map(shlex.split, indented))

    return run


@pytest.fixture
def root(trained, tmp_path):
    """A copy of the trained run and its data, whose commands are shown."""
    root = shutil.copytree(trained.folder, tmp_path / 'my $(data)')
    shutil.copytree(root / 'data/val_images', tmp_path / 'photos')
    for file in (*root.rglob('*.py'), *root.rglob('labels.json')):
        text = file.read_text().replace(str(trained.folder), str(root))
        file.write_text(text.replace("'ERROR'", "'INFO'"))
    return root


def correct(batch):
    """Draws other masks for the images of a batch, as a person does."""
    masks = {}
    for image in sorted((batch / 'images').iterdir()):
        masks[image.name] = path = batch / 'masks' / f'{image.stem}.png'
        drawn = Image.fromarray(np.uint8([[0, 1], [2, 1]]).repeat(16, 0).repeat(20, 1))
        drawn.putpalette(Image.open(path).getpalette())
        drawn.save(path)
    shutil.rmtree('corrected', ignore_errors=True)
    export_masks('coco', 'corrected', masks, read_table(batch).colors, batch / 'images')


def test_two_rounds(follow, root, tmp_path):
    work_dir, number = root / 'work', 3
    next_batch = ['mmseg-cct', 'next-batch', str(work_dir), '--out', str(work_dir / 'batch')]
    for form in ('masks', 'cvat'):
        assert len(read_labels(work_dir).labeled) == number
        *masks, train, report = follow(next_batch, '-n', 1, '--format', form)
        correct(work_dir / 'batch')
        for line in masks:
            follow(line)
        predict, own_report, next_batch = follow(train)
        work_dir, number = tmp_path / train[-1], number + 1
    for line in (predict, own_report, report):
        follow(line)
    written = json.loads((tmp_path / report[-1] / 'report.json').read_text())
    assert 'cannot be compared' not in written['verdict']
    assert written['notes'][0].startswith('rounds of labelling')
