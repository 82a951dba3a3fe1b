"""The labelling loop on a tiny model, by the commands that its tools print themselves."""

import json
import shlex
import shutil
from itertools import takewhile

import numpy as np
from PIL import Image

from mmseg_cct.annotations.class_table import read_table
from mmseg_cct.annotations.export import export_masks


def test_each_command_that_is_printed_runs(slow, cct, tmp_path, capsys):
    def commands_of(name, *arguments):
        """Runs a tool, and gives the command lines that it prints in the end."""
        capsys.readouterr()
        assert cct.tool(name, *arguments) == 0, (name, arguments)
        _, _, following = capsys.readouterr().out.rpartition('Next:\n')
        indented = takewhile(lambda line: line.startswith('  '), following.splitlines())
        return list(map(str.strip, indented))

    def follow(line):
        """Runs a printed line as it is, but for what stands for a user's own."""
        names = dict(IMAGES='data/images', CORRECTED='corrected/coco.json')
        words = [names.get(word, word) for word in shlex.split(line)]
        if words[0] == 'cp':
            shutil.copy(*words[1:])
        else:
            start = 1 if words[0] == 'mmseg-cct' else words.index('mmseg_cct') + 1
            name, *arguments = words[start:]
            assert cct.tool(name.replace('-', '_'), *arguments) == 0, line

    cct.config.log_level = 'INFO'  # of which the lines are
    cct.write()
    predict, report, _ = commands_of('train', 'tiny.py', '--work-dir', 'run')
    follow(predict)
    assert len(list((tmp_path / 'run/predictions/masks').iterdir())) == 8
    follow(report)
    *masks, _, _ = commands_of('next_batch', 'run', '-n', 2, '--out', 'first')
    for path in (tmp_path / 'first/masks').iterdir():  # corrected by a person
        with Image.open(path) as mask:
            mask.putpixel((0, 0), (mask.getpixel((0, 0)) + 1) % 3)
            mask.save(path)
    for line in masks:
        follow(line)
    *import_masks, train, report = commands_of(
        *('next_batch', 'run', '-n', 1, '--format', 'coco', '--out', 'second')
    )
    (image,) = (tmp_path / 'second' / 'images').iterdir()
    corrected = tmp_path / 'truth.png'  # what a person makes of the batch
    Image.fromarray(np.uint8([[0, 1], [2, 1]]).repeat(16, 0).repeat(20, 1)).save(corrected)
    colours = read_table(tmp_path / 'second').colors
    export_masks('coco', tmp_path / 'corrected', {image.name: corrected}, colours, image.parent)
    for line in (*import_masks, train, report):
        follow(line)
    assert len(list((cct.data / 'masks').iterdir())) == 6
    imported = np.asarray(Image.open(cct.data / 'masks' / image.name))
    assert (imported == np.asarray(Image.open(corrected))).all()
    found = json.loads((tmp_path / 'run-round2/report/report.json').read_text())
    assert (
        'cannot be compared' not in found['verdict'] and 'rounds of labelling' in found['notes'][0]
    )
