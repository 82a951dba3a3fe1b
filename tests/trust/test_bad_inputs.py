"""A mistake of every stage of a run: one line, an exit code, no traceback, and nothing is lost.

The line names the file or key, the value and the expectation.
"""

import re
import shutil

import cv2
import numpy as np
import pytest
import torch

VAL, TEST = 'val_dataloader.dataset', 'test_dataloader.dataset'
TRAIN = ('train', 'tiny.py', '--work-dir', 'work')


@pytest.fixture
def spoiled(cct, trained):
    """Beside the data, weights that do not fit, and masks and images that do not do."""
    content = trained.load(trained.checkpoint)
    weights = [*content['state_dict'].items()]
    for name, kept in (('other', dict(other=torch.ones(2))), ('few', dict(weights[::3]))):
        torch.save({**content, 'state_dict': kept}, f'{name}.pth')
    for name in ('masks', 'val_images', 'val_masks'):
        shutil.copytree(cct.data / name, cct.data / f'bad_{name}')
    cv2.imwrite(str(cct.data / 'bad_masks/l1.png'), np.full((32, 40), 7, np.uint8))
    image = cct.data / 'bad_val_images/v1.png'
    data = image.read_bytes()
    image.write_bytes(data[:200] + bytes(400) + data[600:])
    (cct.data / 'bad_val_masks/v1.png').unlink()
    return cct


# stage: (what is set, the line); other mistakes of a stage are in its own room
TABLE = {
    'the build': (
        {'model.backbone.depth': 7},
        r'model\.backbone: ResNet refuses its arguments: invalid depth 7',
    ),
    'the build, by torch': (
        {'train_dataloader.prefetch_factor': 2},
        r'tiny.py: cannot be built \(ValueError: prefetch_factor option could .* in '
        r'utils/data/dataloader.py:\d+\); expected settings that fit together',
    ),
    'parts of a training': (
        {'param_scheduler.0.by_epoch': True},
        r'param_scheduler\.0\.by_epoch: True, and train_cfg',
    ),
    'pretrained weights': (
        {'model.backbone.init_cfg': dict(type='Pretrained', checkpoint='other.pth')},
        r'other\.pth has 0 of the \d+ weights of ResNet',
    ),
    'weights to start from': (
        {'load_from': 'few.pth'},
        r"load_from='few\.pth': has [1-9]\d* of the \d+ weights of the model in its shape; expect",
    ),
    'files': (
        {'train_dataloader.dataset.labeled.mask_dir': 'bad_masks'},
        r'masks/l1.png: label id 7 outside the classes; expected 0 to 2, or 255',
    ),
    'files of validation': (
        {f'{VAL}.image_dir': 'bad_val_images'},
        r'val_dataloader\.dataset: .*v1.png: cannot be read .* expected a readable image',
    ),
    'classes': (
        {f'{VAL}.classes': ('thing', 'ground', 'other')},
        r'val_dataloader\.dataset: class 0 is thing, in the data set ground; expected the same',
    ),
    'metrics': (
        {'val_evaluator.ignore_index': 254},
        r'val_evaluator\.ignore_index=254: expected 255; another label in masks is FolderDataset',
    ),
    'the first validation': (
        {f'{VAL}.pipeline.1.imdecode_backend': 'magick'},
        r'v0\.png: val_dataloader\.dataset\.pipeline does not run on it \(.*magick.* in mm.*:\d+\)',
    ),
    'the first batch': (
        {'model.decode_head.stride': 4},
        r'decode_head\.stride=4: predictions of 16×16 for inputs of 32×32; expected .*, 8$',
    ),
    'test: files': (
        {f'{TEST}.subset': 'all', f'{TEST}.mask_dir': 'bad_val_masks'},
        r'test_dataloader\.dataset: .*v1.png: no mask is named for this labelled image; expected',
    ),
}


@pytest.mark.parametrize('name', TABLE)
def test_one_line_and_an_exit_code(name, spoiled, trained, capfd):
    changes, expected = TABLE[name]
    spoiled.config.merge_from_dict(changes)
    spoiled.write()
    kept = spoiled.folder / 'work' / 'notes.txt'
    kept.parent.mkdir()
    kept.write_bytes(b'mine')
    test = 'test', 'tiny.py', trained.checkpoint, '--work-dir', 't'
    assert spoiled.tool(*(test if name.startswith('test') else TRAIN)) != 0
    out, err = capfd.readouterr()
    assert 'Traceback' not in out + err
    lines = [line for line in err.splitlines() if 'error: ' in line]
    assert [line for line in lines if re.search(expected, line)], lines
    assert kept.read_bytes() == b'mine'


def test_a_bug_keeps_its_traceback(cct, monkeypatch):
    """At the first batch too, where what a library raises is a line."""

    def loss(self, *_):
        return {}['mine']

    monkeypatch.setattr('mmseg_cct.models.CCTSegmentor.loss', loss)
    with pytest.raises(KeyError, match='mine'):
        cct.tool(*TRAIN)
