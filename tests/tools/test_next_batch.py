"""The labelling loop on hand-made masks, by the commands that it prints itself."""

import json
import shlex
import shutil

import cv2
import pytest
from PIL import Image

from mmseg_cct.annotations.class_table import read_table
from mmseg_cct.annotations.export import export_masks
from mmseg_cct.datasets import ShapesDataset
from mmseg_cct.datasets.files.images import write_png
from mmseg_cct.datasets.shapes_scene import draw_scene


@pytest.fixture
def mine(slow, tmp_path):
    """A folder as the README asks for: images, and masks of class ids for some of them."""
    data = tmp_path / 'data' / 'mine'
    for folder, numbers, labeled in (('', range(12), 6), ('val', range(50, 53), 3)):
        for part in ('images', 'masks'):
            (data / folder / part).mkdir(parents=True)
        for index, number in enumerate(numbers):
            image, mask = draw_scene(0, number, 64)
            cv2.imwrite(str(data / folder / 'images' / f'{number}.png'), image)
            if index < labeled:
                cv2.imwrite(str(data / folder / 'masks' / f'{number}.png'), mask)
    return data


@pytest.mark.parametrize('form', ['coco', 'masks'])
def test_each_command_that_is_printed_runs(cct, mine, tmp_path, capsys, form):
    def commands_of(text):
        return [line.strip() for line in text.split('Next:')[1].splitlines() if line[:2] == '  ']

    def follow(line):
        """Runs a printed line as it is, but for the name of the export."""
        words = shlex.split(line)
        if words[0] == 'cp':
            source, target = words[-2:]
            if words[1] == '-r':
                shutil.copytree(source.removesuffix('.'), target, dirs_exist_ok=True)
            else:
                shutil.copy(source, target)
            return
        words = words[words.index('python') + 1 :] if 'python' in words else words
        name, *arguments = (word.replace('CORRECTED', 'corrected/coco.json') for word in words)
        if name in ('-m', 'mmseg-cct'):
            arguments = arguments[name == '-m' :]
            name = arguments.pop(0)
        tool = name.removeprefix('tools/').removesuffix('.py').replace('-', '_')
        assert cct.tool(tool, *arguments) == 0, line

    run = 'work_dirs/cct-strong_mbv2_mine'
    setting = ['--from-scratch', '--size', '64x64', '--iters', 2, '--batch-size', 2]
    setting += ['--classes', *ShapesDataset.METAINFO['classes'], '--out', 'mine']
    assert cct.tool('new_config', mine, *setting) == 0
    assert cct.tool('train', 'mine/cct-strong_mbv2_mine.py', '--work-dir', run) == 0
    capsys.readouterr()
    assert cct.tool('next_batch', run, '-n', 2, '--format', form, '--out', 'batch') == 0
    printed = capsys.readouterr().out
    assert 'scoring 6 candidates and 6 labelled images' in printed
    # what a person makes of the batch
    images = tmp_path / 'batch' / 'images'
    truth = {path.name: tmp_path / 'truth' / path.name for path in images.iterdir()}
    for path in truth.values():
        write_png(path, Image.fromarray(draw_scene(0, int(path.stem), 64)[1]))
    colours = read_table(tmp_path / 'batch').colours
    export_masks('coco', tmp_path / 'corrected', truth, colours, images)
    for line in commands_of(printed):
        follow(line)
    assert len(list((mine / 'masks').iterdir())) == 8
    report = json.loads((tmp_path / f'{run}-round2' / 'report' / 'report.json').read_text())
    assert report['verdict'].startswith('These runs cannot be compared: they differ in labelled im')
