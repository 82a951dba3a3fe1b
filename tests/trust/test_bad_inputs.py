"""A mistake of every stage of a run: one line, an exit code, no traceback, and nothing is lost.

The line names the file or key, the value and the expectation.
"""

import re

import cv2
import numpy as np
import pytest
import torch

VAL, TEST = 'val_dataloader.dataset', 'test_dataloader.dataset'
TRAIN = ('train', 'tiny.py', '--work-dir', 'work')


class Inputs:
    """The tiny config and its data, with ways to spoil them; `arguments` is what is then run."""

    def __init__(self, cct, trained):
        self.cct, self.trained, self.arguments = cct, trained, TRAIN

    def set(self, key, value):
        self.cct.config.merge_from_dict({key: value})
        self.cct.write()

    def remove(self, name):
        (self.cct.data / name).unlink()

    def mask(self, name, ids):
        cv2.imwrite(str(self.cct.data / name), ids)

    def damage(self, name):
        """Zeroes the middle of an image."""
        path = self.cct.data / name
        data = path.read_bytes()
        path.write_bytes(data[:200] + bytes(400) + data[600:])

    def checkpoint(self, name, change):
        """Changes the weights of a checkpoint."""
        content = self.trained.load(self.trained.checkpoint)
        torch.save({**content, 'state_dict': change(content['state_dict'])}, name)

    def test(self):
        self.arguments = 'test', 'tiny.py', self.trained.checkpoint, '--work-dir', 't'


# stage: (what is done to the inputs, the line); other mistakes of a stage are in its own room
TABLE = {
    'the build': (
        lambda i: i.set('model.backbone.depth', 7),
        r'model\.backbone: ResNet refuses its arguments: invalid depth 7',
    ),
    'the build, by torch': (
        lambda i: i.set('train_dataloader.prefetch_factor', 2),
        r'tiny.py: cannot be built \(ValueError: prefetch_factor option could .* in '
        r'utils/data/dataloader.py:\d+\); expected settings that fit together',
    ),
    'parts of a training': (
        lambda i: i.set('param_scheduler.0.by_epoch', True),
        r'param_scheduler\.0\.by_epoch: True, and train_cfg',
    ),
    'pretrained weights': (
        lambda i: (
            i.checkpoint('other.pth', lambda _: dict(other=torch.ones(2))),
            i.set('model.backbone.init_cfg', dict(type='Pretrained', checkpoint='other.pth')),
        ),
        r'other\.pth has 0 of the \d+ weights of ResNet',
    ),
    'weights to start from': (
        lambda i: (
            i.checkpoint('few.pth', lambda weights: dict([*weights.items()][::3])),
            i.set('load_from', 'few.pth'),
        ),
        r"load_from='few\.pth': has [1-9]\d* of the \d+ weights of the model in its shape; expect",
    ),
    'files': (
        lambda i: i.mask('masks/l1.png', np.full((32, 40), 7, np.uint8)),
        r'masks/l1.png: label id 7 outside the classes; expected 0 to 2, or 255',
    ),
    'files of validation': (
        lambda i: i.damage('val_images/v1.png'),
        r'val_dataloader\.dataset: .*v1.png: cannot be read .* expected a readable image',
    ),
    'classes': (
        lambda i: i.set(f'{VAL}.classes', ('thing', 'ground', 'other')),
        r'val_dataloader\.dataset: class 0 is thing, in the data set ground; expected the same',
    ),
    'metrics': (
        lambda i: i.set('val_evaluator.ignore_index', 254),
        r'val_evaluator\.ignore_index=254: expected 255; another label in masks is FolderDataset',
    ),
    'the first validation': (
        lambda i: i.set(f'{VAL}.pipeline.1.imdecode_backend', 'magick'),
        r'v0\.png: val_dataloader\.dataset\.pipeline does not run on it \(.*magick.* in mm.*:\d+\)',
    ),
    'the first batch': (
        lambda i: i.set('model.decode_head.stride', 4),
        r'decode_head\.stride=4: predictions of 16×16 for inputs of 32×32; expected .*, 8$',
    ),
    'test: files': (
        lambda i: (i.set(f'{TEST}.subset', 'all'), i.remove('val_masks/v1.png'), i.test()),
        r'test_dataloader\.dataset: .*v1.png: no mask is named for this labelled image; expected',
    ),
}


@pytest.mark.parametrize('name', TABLE)
def test_one_line_and_an_exit_code(name, cct, trained, capfd):
    spoil, expected = TABLE[name]
    kept = cct.folder / 'work' / 'notes.txt'
    kept.parent.mkdir()
    kept.write_bytes(b'mine')
    inputs = Inputs(cct, trained)
    spoil(inputs)
    assert cct.tool(*inputs.arguments) != 0
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


@pytest.mark.slow
def test_a_bad_test_set_is_a_warning_while_training_and_no_validation_set_is_fine(cct, capfd):
    cct.config.update(val_dataloader=None, val_cfg=None, val_evaluator=None, log_level='WARNING')
    cct.config.test_dataloader.dataset.image_dir = 'gone'
    cct.write()
    cct.train(options={'train_cfg.max_iters': 1})
    out, err = capfd.readouterr()
    assert 'the training goes on, but tools/test.py will stop: ' in out + err
    assert (cct.folder / 'work/iter_1.pth').is_file()
