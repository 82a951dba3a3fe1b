import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import tiny_weak
import torch
from PIL import Image
from ranks import outcomes, start_tool, without_cuda
from world import run_tool

from mmseg_cct.pseudo_labels import labels_from_maps

weak = tiny_weak.weak


def arguments(weak, out, *args):
    tool = 'make_pseudo_labels', weak.config, weak.checkpoint
    return *tool, '--out', out, '--workers', 0, *args


def label(weak, *args):
    return run_tool(*arguments(weak, weak.out, *args))


def test_without_pydensecrf_one_line_and_no_crf_still_works(weak, refused, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        labels_from_maps.importlib.util, 'find_spec',
        lambda name, *args: None if name == 'pydensecrf' else find_spec(name, *args),
    )  # fmt: skip
    said = refused(*arguments(weak, weak.out))
    assert said.startswith('error: pydensecrf is not installed')
    assert not Path(weak.out).exists()
    assert label(weak, '--no-crf') == 0


@pytest.mark.parametrize(
    ('classes', 'message'),
    [
        (['other', 'thing'], 'cam.pth: class 0 is thing, in the data set other; expected the same'),
        (['thing', 'other', 'ground'], 'model.head.num_classes=2: expected 3, the classes of pseu'),
    ],
)
def test_labels_of_other_classes_than_the_classifiers(weak, refused, classes, message):
    content = torch.load(weak.checkpoint)
    content['meta'] = dict(dataset_meta=dict(classes=['thing', 'other']))
    torch.save(content, weak.checkpoint)
    file = weak.root / 'labels.json'
    file.write_text(json.dumps(json.loads(file.read_text()) | dict(metainfo=dict(classes=classes))))
    assert message in refused(*arguments(weak, weak.out, '--no-crf'))
    assert not Path(weak.out).exists()


@pytest.mark.slow
@without_cuda
def test_workers_and_two_processes_write_what_this_one_writes(weak, tmp_path, capsys):
    pytest.importorskip('pydensecrf', reason='the CRF is its (extra `weak`)')
    assert label(weak) == 0
    assert run_tool(*arguments(weak, 'workers', '--workers', 1)) == 0
    said = capsys.readouterr().err
    assert '4/4' in said and 'image/s' in said
    (code, said, error), second = outcomes(start_tool(tmp_path, *arguments(weak, 'two')))
    assert (code, second[0]) == (0, 0), error + second[2]
    assert '4 written to two, 0 there already' in said
    for out in ('workers', 'two'):
        for folder in ('labels', 'before_crf'):
            for name in weak.names:
                path = f'{folder}/{name}.png'
                assert Path(out, path).read_bytes() == Path(weak.out, path).read_bytes()


def test_image_labels_from_a_table_and_from_masks_with_a_mapping_of_their_own(weak, capsys):
    def made(*args):
        run_tool('make_image_labels', '--images', weak.images, '--out', 'l.json', *args)
        written = json.loads(Path('l.json').read_text())
        return {item['img_path']: item['gt_label'] for item in written['data_list']}

    Path('table.csv').write_text('image,labels\na.jpg,other;thing\nmore/c.jpg,thing\nd.jpg,other\n')
    Path('names.txt').write_text('d\na\n')
    options = '--list', 'names.txt', '--classes', *weak.classes, '--background', 'ground'
    assert made('--csv', 'table.csv', *options) == {'a.jpg': [0, 1], 'd.jpg': [1]}
    said = capsys.readouterr().out
    assert said == 'wrote l.json: 2 images; with each class: thing 1, other 2\n'
    for kind, mask, found in ('CamVidDataset', [8, 11], [8]), ('ADE20KDataset', [0, 1, 3], [0, 2]):
        for name in weak.names:
            Image.fromarray(np.array([mask], np.uint8)).save(weak.masks / f'{name}.png')
        ids = made('--masks', weak.masks, '--dataset', kind, '--overwrite')
        assert ids == {f'{name}.jpg': found for name in weak.names}
