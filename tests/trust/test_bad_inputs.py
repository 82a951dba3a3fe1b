"""What users get wrong, as a table: each gives one line, an exit code, and no traceback.

The line names the file or key, the value and the expectation; nothing that was written is lost.
"""

import os
import re
import shutil
import subprocess
import sys

import cv2
import numpy as np
import pytest
import torch

from mmseg_cct.preflight import preflight_hook

LABELED, UNLABELED = 'train_dataloader.dataset.labeled', 'train_dataloader.dataset.unlabeled'
VAL, TEST = 'val_dataloader.dataset', 'test_dataloader.dataset'
BANK, HEAD = 'model.auxiliary_head', 'model.decode_head'
HEAD_OF_MMSEG = dict(channels=4, num_classes=3, norm_cfg=dict(type='BN'))
TRAIN = ('train', 'tiny.py', '--work-dir', 'work')


class Inputs:
    """The tiny config and its data, with ways to spoil them; `arguments` is what is then run."""

    def __init__(self, cct, trained):
        self.cct, self.trained, self.arguments = cct, trained, TRAIN

    def run(self, *arguments):
        self.arguments = arguments

    def set(self, key, value):
        self.cct.config.merge_from_dict({key: value})
        self.cct.write()

    def owner(self, key):
        """The dict or list that holds a setting, and its name there."""
        *path, name = [int(part) if part.isdigit() else part for part in key.split('.')]
        owner = self.cct.config
        for part in path:
            owner = owner[part]
        return owner, name

    def put(self, key, value):
        """Sets a value as it is; `set` merges it into the one that is there."""
        owner, name = self.owner(key)
        owner[name] = value
        self.cct.write()

    def drop(self, key):
        owner, name = self.owner(key)
        owner.pop(name)
        self.cct.write()

    def text(self, name, content, key=None):
        """Writes a file, and names it in the config."""
        path = self.cct.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        if key:
            self.set(key, str(path))

    def remove(self, name):
        path = self.cct.data / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    def mask(self, name, ids):
        cv2.imwrite(str(self.cct.data / name), ids)

    def truncate(self, name, as_type=None, cut=100):
        """Cuts the end off an image, maybe as a JPEG of the same stem."""
        path = self.cct.data / name
        if as_type:
            image = cv2.imread(str(path))
            path.unlink()
            path = path.with_suffix(as_type)
            cv2.imwrite(str(path), image)
        path.write_bytes(path.read_bytes()[:-cut])

    def damage(self, name):
        """Zeroes the middle of an image."""
        path = self.cct.data / name
        data = path.read_bytes()
        path.write_bytes(data[:200] + bytes(400) + data[600:])

    def checkpoint(self, name, change):
        content = self.trained.load(self.trained.checkpoint)
        torch.save(change(content), self.cct.folder / name)

    def test(self, checkpoint=None, *options):
        self.run(
            'test', 'tiny.py', checkpoint or self.trained.checkpoint, '--work-dir', 't', *options
        )


def fewer_classes(content):
    for key, value in content['state_dict'].items():
        if key == 'decode_head.conv_seg.weight':
            content['state_dict'][key] = value[:2]
    return content


def third_of_weights(content):
    state = content['state_dict']
    return dict(state_dict={name: state[name] for name in list(state)[::3]})


# name: (what is done to the inputs, the line)
CONFIGS = {
    'model': (
        lambda i: i.set('model.type', 'CCTSegmentr'),
        r"model\.type: no 'CCTSegmentr' in .*; did you mean CCTSegmentor",
    ),
    'depth': (
        lambda i: i.set('model.backbone.depth', 7),
        r'model\.backbone: ResNet refuses its arguments: invalid depth 7',
    ),
    'name of a perturbation': (
        lambda i: i.set(f'{BANK}.perturbations.FeatureDrp.num_decoders', 0),
        r'auxiliary_head\.perturbations\.FeatureDrp: no type; did you mean FeatureDrop\?',
    ),
    'stride of the features': (
        lambda i: i.set(f'{HEAD}.stride', 4),
        r'decode_head\.stride=4: predictions of 16×16 for inputs of 32×32; expected .*, 8$',
    ),
    'stride of the bank': (
        lambda i: i.set(f'{BANK}.stride', 4),
        r'auxiliary_head\.stride=4: predictions of 16×16 for images of 32×32; expected .*, 8$',
    ),
    'channels of the neck': (
        lambda i: i.set('model.neck.in_channels', 16),
        r'model\.neck\.in_channels=16: expected 8, the channels of output -1 of model\.backbone',
    ),
    'channels of the head': (
        lambda i: i.set(f'{HEAD}.in_channels', 7),
        r'decode_head\.in_channels=7: expected 6',
    ),
    'channels of a head of MMSeg': (
        lambda i: i.put(HEAD, dict(HEAD_OF_MMSEG, type='FCNHead', in_channels=7, num_convs=1)),
        r'error: model\.decode_head\.in_channels=7: expected 6, the channels of the features',
    ),
    'channels of a head that takes several': (
        lambda i: i.put(
            HEAD, dict(HEAD_OF_MMSEG, type='SegformerHead', in_channels=[7], in_index=[0])
        ),
        r'error: model\.decode_head\.in_channels=\[7\]: expected \[6\], the channels of the',
    ),
    'channels of the bank': (
        lambda i: i.set(f'{BANK}.in_channels', 7),
        r'auxiliary_head\.in_channels=7: expected 6',
    ),
    'ignored label of the head': (
        lambda i: i.set('model.decode_head.ignore_index', 254),
        r'model\.decode_head\.ignore_index=254: expected 255; another label in masks is Folder',
    ),
    'ignored label of a metric': (
        lambda i: i.set('val_evaluator.ignore_index', 254),
        r'val_evaluator\.ignore_index=254: expected 255; another label in masks is FolderDataset',
    ),
    'test: ignored label of a metric': (
        lambda i: (i.set('test_evaluator.ignore_index', 254), i.test()),
        r'test_evaluator\.ignore_index=254: expected 255; another label in masks is FolderDataset',
    ),
    'batch of one': (
        lambda i: i.set('train_dataloader.batch_size', 1),
        r'train_dataloader\.batch_size=1 per branch: .* expected at least 2',
    ),
    'mixed precision': (
        lambda i: (i.set('optim_wrapper.type', 'ApexOptimWrapper'), i.run(*TRAIN, '--amp')),
        r'--amp: optim_wrapper\.type is ApexOptimWrapper; expected OptimWrapper',
    ),
    'pretrained weights': (
        lambda i: i.set('model.backbone.init_cfg', dict(type='Pretrained', checkpoint='gone.pth')),
        r'model\.backbone\.init_cfg\.checkpoint: gone.pth is not a file; expected',
    ),
    'pretrained weights of another network': (
        lambda i: (
            i.checkpoint('other.pth', lambda _: dict(state_dict=dict(other=torch.ones(2)))),
            i.set('model.backbone.init_cfg', dict(type='Pretrained', checkpoint='other.pth')),
        ),
        r'other\.pth has 0 of the \d+ weights of ResNet',
    ),
}


def setting(key, value, expected):
    """A row for a setting that cannot be."""
    return lambda i: i.set(key, value), expected


SETTINGS = {
    'parts that do not go together': setting(
        'param_scheduler.0.by_epoch', True, r'param_scheduler\.0\.by_epoch: True, and train_cfg'
    ),
    'no perturbations': (
        lambda i: i.put(f'{BANK}.perturbations', []),
        r'perturbations=\[\]: expected a dict of perturbations',
    ),
    'an error of torch': setting(
        'train_dataloader.prefetch_factor',
        2,
        r'tiny.py: cannot be built \(ValueError: prefetch_factor option could .* in '
        r'utils/data/dataloader.py:\d+\); expected settings that fit together',
    ),
}
COMMAND_LINES = {
    'work dir whose name is no text': (
        lambda i: i.run('train', 'tiny.py', '--work-dir', os.fsdecode(b'w\xe9')),
        r"--work-dir 'w\\udce9': expected a name in UTF-8",
    ),
    'work dir is a file': (
        lambda i: (i.text('w', 'x'), i.run('train', 'tiny.py', '--work-dir', 'w')),
        '--work-dir: w is a file; expected a folder',
    ),
    **{
        f'{tool}: seed': (
            lambda i, arguments=(tool, *rest, option, '-1'): i.run(*arguments),
            rf'{option}: -1; expected 0 to 4294967295',
        )
        for tool, option, *rest in (
            ('make_splits', '--seed', '--images', 'data/images', '-n', 2, '--out', 's'),
            ('next_batch', '--seed', 'x.pth', '--out', 'r'),
            ('ablation', '--seeds', 'tiny.py', '--grid', '--out', 'a'),
        )
    },
}  # fmt: skip
FILES = {
    'truncated TIFF': (
        lambda i: i.truncate('images/u1.png', '.tif', 1900),
        r'images/u1.tif: cannot be read \(.*\); expected a readable image',
    ),
    'order of the classes': (
        lambda i: i.set(f'{VAL}.classes', ('thing', 'ground', 'other')),
        r'val_dataloader\.dataset: class 0 is thing, in the data set ground; expected the same',
    ),
    'label id': (
        lambda i: i.mask('masks/l1.png', np.full((32, 40), 7, np.uint8)),
        r'masks/l1.png: label id 7 outside the classes; expected 0 to 2, or 255',
    ),
    'image of one row': (
        lambda i: (
            i.mask('images/l1.png', np.zeros((1, 40, 3), np.uint8)),
            i.mask('masks/l1.png', np.zeros((1, 40), np.uint8)),
        ),
        r'masks/l1.png: 40×1 pixels; expected 2 or more on each side',
    ),
    'damaged validation image with a good end': (
        lambda i: i.damage('val_images/v1.png'),
        r'val_dataloader\.dataset: .*v1.png: cannot be read .* expected a readable image',
    ),
    'images of several sizes': (
        lambda i: (i.drop(f'{LABELED}.pipeline.3'), i.set('model.data_preprocessor.size', None)),
        r'labeled images of .*×.* in one batch; expected one size',
    ),
}  # fmt: skip
CHECKPOINTS = {
    'load_from: none': (
        lambda i: i.set('load_from', 'gone.pth'),
        r'gone.pth: no such checkpoint file',
    ),
    'load_from: under half of its weights fit': (
        lambda i: (
            i.checkpoint('few.pth', third_of_weights),
            i.set('load_from', 'few.pth'),
        ),
        r"load_from='few\.pth': has [1-9]\d* of the \d+ weights of the model in its shape; expect",
    ),
    'test: order of the classes': (
        lambda i: (i.set(f'{TEST}.classes', ('thing', 'ground', 'other')), i.test()),
        r'the checkpoint: class 0 is ground, in the data set thing; expected the same order',
    ),
    'test: no weights': (
        lambda i: (i.checkpoint('list.pth', lambda _: [1, 2]), i.test('list.pth')),
        r'list.pth: holds no weights; expected a checkpoint with state_dict',
    ),
    'test: other classes': (
        lambda i: (i.checkpoint('two.pth', fewer_classes), i.test('two.pth')),
        r'two.pth: does not fit the config in 1 .*expected \(3, 6, 1, 1\) \(trained on 3 classes\)',
    ),
    'test: no mask': (
        lambda i: (i.set(f'{TEST}.subset', 'all'), i.remove('val_masks/v1.png'), i.test()),
        r'test_dataloader\.dataset: .*v1.png: no mask is named for this labelled image; expected',
    ),
}
REHEARSAL = {
    'save_best': (
        lambda i: i.set('default_hooks.checkpoint.save_best', 'mIOU'),
        r"checkpoint\.save_best='mIOU': no such metric; expected aAcc, mIoU, mAcc or auto",
    ),
    'validation without packing': (
        lambda i: i.drop(f'{VAL}.pipeline.2'),
        r'model\.data_preprocessor: a batch without inputs; expected PackSegInputs',
    ),
    'validation transform': (
        lambda i: i.set(f'{VAL}.pipeline.1.imdecode_backend', 'magick'),
        r'v0\.png: val_dataloader\.dataset\.pipeline does not run on it \(.*magick.* in mm.*:\d+\)',
    ),
}  # fmt: skip
TABLE = {
    **REHEARSAL,
    **CONFIGS,
    **SETTINGS,
    **COMMAND_LINES,
    **FILES,
    **CHECKPOINTS,
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


def test_as_a_process(cct, trained):
    spoil, expected = TABLE['label id']
    spoil(Inputs(cct, trained))
    done = subprocess.run(
        [sys.executable, str(cct.tools / 'train.py'), 'tiny.py', '--work-dir', 'work'],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert re.search(expected, done.stderr.splitlines()[-1])
    assert 'Traceback' not in done.stderr + done.stdout


def test_a_bug_keeps_its_traceback(cct, monkeypatch):
    """At the first batch too, where what a library raises is a line."""

    def loss(self, *_):
        return {}['mine']

    monkeypatch.setattr('mmseg_cct.models.CCTSegmentor.loss', loss)
    with pytest.raises(KeyError, match='mine'):
        cct.tool(*TRAIN)


def test_a_bad_test_set_is_a_warning_while_training(cct, capfd):
    cct.config.log_level = 'WARNING'
    cct.config.test_dataloader.dataset.image_dir = 'gone'
    cct.write()
    cct.train(options={'train_cfg.max_iters': 1})
    out, err = capfd.readouterr()
    assert 'the training goes on, but tools/test.py will stop: ' in out + err
    assert (cct.folder / 'work/iter_1.pth').is_file()


def test_the_rehearsed_validation_leaves_the_training_as_it_is(cct, monkeypatch):
    cct.train('with')
    monkeypatch.setattr(preflight_hook, 'rehearse_validation', lambda runner: None)
    cct.train('without')
    files = [cct.folder / work_dir / 'iter_6.pth' for work_dir in ('with', 'without')]
    one, other = (cct.load(file) for file in files)
    assert one['state_dict'].keys() == other['state_dict'].keys()
    for key, value in one['state_dict'].items():
        assert torch.equal(value, other['state_dict'][key]), key
