"""Two rounds of labelling by the commands that tools print, in the state in which they print them.

Names hold blanks, quotes and what a shell would run.
"""

import json
import shlex
import shutil
from itertools import takewhile

import cv2
import numpy as np
import pytest
from PIL import Image
from world import run_tool

from mmseg_cct.annotations.class_table import read_table
from mmseg_cct.annotations.export import export_masks
from mmseg_cct.engine.labels_record import read_labels

DATA, RUN = "Bob's $(data)", 'work_dirs/cct-strong_mbv2_Bob-s-data-'
# what somebody adds to a printed command
OWN = {
    'new-config': ['--from-scratch', '--iters', 2, '--batch-size', 2, '--size', '64x32'],
    'next-batch': ['-n', 2, '--format', 'cvat'],
}


@pytest.fixture
def follow(slow, tmp_path, monkeypatch, capsys):
    """Runs a printed line, with options of one's own; gives the lines that are printed then."""
    monkeypatch.chdir(tmp_path)

    def run(line):
        words = [dict(IMAGES='photos', CORRECTED='corrected/coco.json').get(w, w) for w in line]
        if words[:2] == ['cp', '-r']:
            return shutil.copytree(*words[2:], dirs_exist_ok=True)
        name, *arguments = words[1 if words[0] == 'mmseg-cct' else 3 :]
        capsys.readouterr()
        run_tool(name.replace('-', '_'), *arguments, *OWN.get(name, ()))
        said = capsys.readouterr().out
        _, _, following = said.rpartition('Next:\n')
        indented = takewhile(lambda text: text.startswith('  '), following.splitlines())
        return said, list(map(shlex.split, indented))

    return run


def draw(path, seed):
    image = np.random.default_rng(seed).integers(0, 256, (4, 8, 3), np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), cv2.resize(image, (64, 32)))


def write_coco(path, numbers):
    images = [dict(id=n, file_name=f'photo {n}.jpg', width=64, height=32) for n in numbers]
    crack = dict(category_id=1, iscrowd=0, segmentation=[[5, 5, 40, 5, 40, 25, 5, 25]])
    annotations = [dict(crack, id=n, image_id=n) for n in numbers]
    categories = [dict(id=1, name='rusty crack')]
    path.write_text(json.dumps(dict(images=images, annotations=annotations, categories=categories)))


def correct(batch):
    """Draws other masks for the images of a batch."""
    masks = {}
    for image in sorted((batch / 'images').iterdir()):
        masks[image.name] = mask = batch / f'{image.stem} truth.png'
        Image.fromarray(np.eye(2, dtype=np.uint8).repeat(16, 0).repeat(32, 1)).save(mask)
    shutil.rmtree('corrected', ignore_errors=True)
    export_masks('coco', 'corrected', masks, read_table(batch).colors, batch / 'images')


def test_two_rounds(follow, tmp_path):
    for n in range(16):
        draw(tmp_path / f'photos/photo {n}.jpg', n)
    write_coco(tmp_path / 'one.json', range(4))
    options = ['--images', 'photos', '--rest', 'background', '--out', DATA]
    said, (new_config,) = follow(['mmseg-cct', 'import-masks', 'one.json', *options])
    table = said[said.index('| class') :].partition('\n\n')[0]
    said, (train, *baseline, compare) = follow(new_config)
    assert [row.split('|')[1:3] for row in table.splitlines()] == [
        row.split('|')[1:3] for row in said.splitlines() if row.startswith('|')
    ]  # where a wrong --rest shows

    # labels that come after the config are trained by it, as the import says
    write_coco(tmp_path / 'two.json', range(4, 6))
    _, again = follow(['mmseg-cct', 'import-masks', 'two.json', '--out', DATA])
    assert again == [train]
    for line in baseline:
        follow(line)
    _, (predict, report, next_batch) = follow(train)
    for line in (predict, report, compare):
        follow(line)

    for number, folder in ((6, RUN), (8, f'{RUN}-round2')):
        assert len(read_labels(folder).labeled) + 1 == number  # and one validates
        _, (import_masks, train, report) = follow(next_batch)
        correct(tmp_path / folder / 'batch')
        _, again = follow(import_masks)
        assert [line[-2:] for line in again] == [train[-2:]]  # into the same work directory
        _, (_, _, next_batch) = follow(train)
        follow(report)
        written = json.loads((tmp_path / train[-1] / 'report/report.json').read_text())
        assert 'cannot be compared' not in written['verdict']
        assert written['notes'][0].startswith('rounds of labelling')
