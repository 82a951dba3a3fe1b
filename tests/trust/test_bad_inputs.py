"""What users get wrong, as a table: each gives one line, an exit code, and no traceback.

The line names the file or key, the value and the expectation; nothing that was written is lost.
"""

import re
import shutil
import subprocess
import sys

import cv2
import numpy as np
import pytest
import tiny_weak
import torch

from mmseg_cct.engine.hooks import preflight_hook

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

    def replace(self, name, suffix, pixels):
        """Writes another image of the same stem in its place."""
        self.remove(name)
        cv2.imwrite(str((self.cct.data / name).with_suffix(suffix)), pixels)

    def masks(self, ids):
        for index in range(3):
            self.mask(f'masks/l{index}.png', ids)

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

    def predict(self, checkpoint=None, images='data/images', out='out'):
        self.run(
            'predict', 'tiny.py', checkpoint or self.trained.checkpoint, images, '--out', out,
            '--device', 'cpu',
        )  # fmt: skip

    def split(self, *options):
        self.text('names.txt', 'a\nb\nc\n')
        self.run('make_splits', *options, '--out', 'splits')


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
    'no config': (lambda i: i.run('train', 'none.py'), r'none.py: no such config file'),
    'syntax': (lambda i: i.text('tiny.py', 'a = [1,'), r'tiny.py: this config does not load: Synt'),
    'no base': (lambda i: i.text('tiny.py', "_base_ = 'gone.py'"), r'does not load: .*gone\.py'),
    'no data': (
        lambda i: i.drop('train_dataloader'),
        r'tiny.py: no train_dataloader; expected a config for training',
    ),
    'option into a number': (
        lambda i: i.run(*TRAIN, '--cfg-options', 'train_cfg.max_iters.deeper=3'),
        r'--cfg-options train_cfg\.max_iters\.deeper: .* where train_cfg\.max_iters is 6; exp',
    ),
    'model': (
        lambda i: i.set('model.type', 'CCTSegmentr'),
        r"model\.type: no 'CCTSegmentr' in .*; did you mean CCTSegmentor",
    ),
    'neck': (
        lambda i: i.set('model.neck.type', 'PSPNek'),
        r"model\.neck\.type: no 'PSPNek' in .* did you mean PSPNeck",
    ),
    'argument': (
        lambda i: i.set('model.neck.chanels', 6),
        r"model\.neck: .*unexpected keyword argument 'chanels'; PSPNeck takes in_channels",
    ),
    'argument of the head': (
        lambda i: i.set(f'{HEAD}.loss_decod', {}),
        r"model\.decode_head: .*unexpected keyword argument 'loss_decod'",
    ),
    'depth': (
        lambda i: i.set('model.backbone.depth', 7),
        r'model\.backbone: ResNet refuses its arguments: invalid depth 7',
    ),
    'data set': (
        lambda i: i.set(f'{LABELED}.type', 'FolderDatset'),
        r"no 'FolderDatset' in .* did you mean FolderDataset",
    ),
    'transform': (
        lambda i: i.set(f'{LABELED}.pipeline.0.type', 'LoadImageFromFil'),
        r"no 'LoadImageFromFil' in .* did you mean LoadImageFromFile",
    ),
    'hook': (
        lambda i: i.set('custom_hooks.0.type', 'IterationSeedHok'),
        r"custom_hooks\.0\.type: no 'IterationSeedHok' .* did you mean IterationSeedHook",
    ),
    'optimizer': (
        lambda i: i.set('optim_wrapper.optimizer.type', 'SGDD'),
        r"optim_wrapper\.optimizer\.type: no 'SGDD' in .* did you mean .*SGD",
    ),
    'learning rate': (
        lambda i: i.set('optim_wrapper.optimizer.lr', -1.0),
        r'optim_wrapper\.optimizer: SGD refuses its arguments: Invalid learning rate: -1',
    ),
    'iterations': (
        lambda i: i.set('train_cfg.max_iters', 'many'),
        r"train_cfg\.max_iters='many': expected a whole number from 1",
    ),
    'schedule without length': (
        lambda i: i.set('param_scheduler.0.begin', 6),
        r'param_scheduler\.0: PolyLR refuses its arguments: .*begin=6, end=6',
    ),
    'perturbation': (
        lambda i: i.set(f'{BANK}.perturbations.FeatureDrop.type', 'FeatureDorp'),
        r"perturbations\.FeatureDrop\.type: no 'FeatureDorp' in .* did you mean FeatureDrop",
    ),
    'argument of a perturbation': (
        lambda i: i.set(f'{BANK}.perturbations.FeatureDrop.num_decoder', 0),
        r"auxiliary_head\.perturbations\.FeatureDrop: .* 'num_decoder'; FeatureDrop takes num",
    ),
    'name of a perturbation': (
        lambda i: i.set(f'{BANK}.perturbations.FeatureDrp.num_decoders', 0),
        r'auxiliary_head\.perturbations\.FeatureDrp: no type; did you mean FeatureDrop\?',
    ),
    'no decoder': (
        lambda i: i.set(
            f'{BANK}.perturbations',
            {k: dict(num_decoders=0) for k in i.cct.config.model.auxiliary_head.perturbations},
        ),
        r'perturbations: no decoder is left; expected num_decoders >= 1',
    ),
    'share of positions': (
        lambda i: i.set(f'{BANK}.position_fraction', 0),
        r'position_fraction=0: expected a value in \(0, 1\]',
    ),
    'stride of the decoders': (
        lambda i: i.set(f'{HEAD}.stride', 6),
        r'stride=6: expected a power of two',
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
    'classes of the bank': (
        lambda i: i.set(f'{BANK}.num_classes', 5),
        r"auxiliary_head\.num_classes=5: expected 3, the main decoder's",
    ),
    'classes of the head': (
        lambda i: i.set(f'{HEAD}.num_classes', 21),
        r'decode_head\.num_classes=21: expected 3, the classes of .* \(ground, thing, other\)',
    ),
    'ignored label of the head': (
        lambda i: i.set('train_dataloader.dataset.labeled.ignore_index', 254),
        r'decode_head\.ignore_index=255: expected 254, train_dataloader\.dataset\.labeled\.ignore',
    ),
    'ignored label of a metric': (
        lambda i: i.set(f'{VAL}.ignore_index', 254),
        r'val_evaluator\.ignore_index=255: expected 254, val_dataloader\.dataset\.ignore_index',
    ),
    'test: ignored label of a metric': (
        lambda i: (i.set(f'{TEST}.ignore_index', 254), i.test()),
        r'test_evaluator\.ignore_index=255: expected 254, test_dataloader\.dataset\.ignore_index',
    ),
    'context class by name': (
        lambda i: i.set(f'{BANK}.context_classes', ('grund',)),
        r"context_classes: no class 'grund'; did you mean ground",
    ),
    'context class by id': (
        lambda i: i.set(f'{BANK}.context_classes', (9,)),
        r'context_classes: 9; expected names or ids from 0 to 2',
    ),
    'ramp': (
        lambda i: i.set('custom_hooks.1.schedule', 'expp'),
        r"RampUpHook\.schedule='expp': expected one of .*exp",
    ),
    'ramped attribute': (
        lambda i: i.set('custom_hooks.1.attribute', 'auxiliary_head.los'),
        r"RampUpHook\.attribute='auxiliary_head\.los': the model has no 'los'",
    ),
    'fraction of a ramp': (
        lambda i: i.set('custom_hooks.1.fraction', 2),
        r'RampUpHook\.fraction=2: expected a share of training in \[0, 1\]',
    ),
    'compiled module': (
        lambda i: i.set('custom_hooks.0', dict(type='CompileHook', modules=['nek'])),
        r"CompileHook\.modules: the model has no module 'nek'; expected",
    ),
    'batch of one': (
        lambda i: i.set('train_dataloader.batch_size', 1),
        r'train_dataloader\.batch_size=1 per branch: .* expected at least 2',
    ),
    'sampler': (
        lambda i: i.set('train_dataloader.sampler.type', 'InfiniteSampler'),
        r"train_dataloader\.sampler: .* expected sampler=dict\(type='PairSampler'\)",
    ),
    'mixed precision': (
        lambda i: (
            i.set('optim_wrapper.type', 'ApexOptimWrapper'),
            i.run(*TRAIN, '--amp'),
        ),
        r'--amp: optim_wrapper\.type is ApexOptimWrapper; expected OptimWrapper',
    ),
    'pretrained weights': (
        lambda i: i.set('model.backbone.init_cfg', dict(type='Pretrained', checkpoint='gone.pth')),
        r'model\.backbone\.init_cfg\.checkpoint: gone.pth is not a file; expected',
    ),
}


def pretrained(content, expected):
    """A row for weights of a backbone: bytes of a file, or a change of the trained ones."""

    def spoil(i):
        if isinstance(content, bytes):
            i.text('backbone.pth', content)
        else:
            i.checkpoint('backbone.pth', content)
        i.set(
            'model.backbone.init_cfg',
            dict(type='Pretrained', checkpoint='backbone.pth', prefix='backbone.'),
        )

    return spoil, rf'backbone\.pth:? {expected}'


def with_nan(content):
    content['state_dict']['backbone.layer1.0.conv1.weight'][0, 0] = float('nan')
    return content


def setting(key, value, expected):
    """A row for a setting that cannot be."""
    return lambda i: i.set(key, value), expected


PRETRAINED = {
    'pretrained weights: HTML': pretrained(
        b'<!DOCTYPE html><html>404</html>',
        r"cannot be read \(begins with b'<!DOCTYPE html>.*, as no checkpoint does\); expected",
    ),
    'pretrained weights: empty': pretrained(
        b'', r'cannot be read \(empty\); expected a whole file'
    ),
    'pretrained weights: cut off': pretrained(
        b'PK\x03\x04' + bytes(900), r'cannot be read \(damaged: .*\); expected a whole file'
    ),
    'pretrained weights: NaN': pretrained(
        with_nan, r'1 of its weights are NaN or infinite, the first is backbone\.layer1\.0\.conv1'
    ),
    'pretrained weights: of another network': pretrained(
        lambda _: dict(state_dict=dict(other=torch.ones(2))), r'has 0 of the \d+ weights of ResNet'
    ),
}
PAIRS = 'train_dataloader.dataset'
SETTINGS = {
    f'{key}={value}': setting(key, value, rf'{re.escape(key)}={re.escape(repr(value))}: expected ')
    for key, value in (
        ('train_cfg.max_iters', 0),
        ('train_cfg.max_iters', True),
        ('train_cfg.val_interval', 0),
        ('train_dataloader.batch_size', 0),
        ('train_dataloader.num_workers', -1),
        ('val_dataloader.batch_size', 'two'),
        ('randomness.seed', -1),
        ('randomness.seed', 2**32),
        ('randomness.seed', 'seven'),
        ('optim_wrapper.accumulative_counts', 0),
        ('optim_wrapper.optimizer.lr', 'fast'),
        ('optim_wrapper.optimizer.momentum', -0.5),
        ('model.decode_head.num_classes', 0),
        ('model.auxiliary_head.loss_consistency.confidence_threshold', 2),
        ('model.auxiliary_head.memory_budget', -1),
        ('custom_hooks.1.end', 'abc'),
        ('default_hooks.checkpoint.interval', 0),
    )
}
STRUCTURE = {
    f'{key}={value!r}': (lambda i, key=key, value=value: i.put(key, value), expected)
    for key, value, expected in (
        ('model', [1], r'model=\[1\]: expected a dict, or None'),
        ('train_dataloader', 'x', r"train_dataloader='x': expected a dict, or None"),
        ('param_scheduler', [3], r'param_scheduler=\[3\]: expected a dict or list of dicts'),
        ('custom_hooks', {}, r'custom_hooks=\{\}: expected a list of dicts, or None'),
        ('default_scope', 3, r'default_scope=3: expected a text, or None'),
        ('custom_hooks.0', {}, r'custom_hooks\.0: no type; expected type=..., the name of a hook'),
        ('model.neck', 7, r'model\.neck=7: expected dict\(type=...\), a model'),
        (
            'model.neck.type',
            ['PSPNeck'],
            r"model\.neck\.type=\['PSPNeck'\]: expected the name of a",
        ),
        ('model.neck.type', '../x', r"model\.neck\.type: no '../x' in mmseg's registry of models"),
        (
            f'{VAL}.pipeline.0',
            'x',
            r"val_dataloader\.dataset\.pipeline\.0='x': expected dict\(type=",
        ),
        (f'{BANK}.perturbations', [], r'perturbations=\[\]: expected a dict of perturbations'),
        ('model.backbone.strides', 3, r'model\.backbone: ResNet refuses its arguments: object of '),
        (
            'train_dataloader.prefetch_factor',
            2,
            r'tiny.py: cannot be built \(ValueError: prefetch_factor option could .* in '
            r'utils/data/dataloader.py:\d+\); expected settings that fit together',
        ),
        (
            'model.test_cfg.mode',
            None,
            r"model\.test_cfg\.mode=None: expected 'whole' or 'slide'",
        ),
    )
}
WHOLE = {
    'no model': (lambda i: i.drop('model'), r'model: missing; expected the config of a model'),
    'no labelled set': setting(
        f'{PAIRS}.labeled', None, r'dataset\.labeled: missing; expected a labelled set'
    ),
    'no evaluator': (
        lambda i: i.drop('val_evaluator'),
        r'val_evaluator: missing; expected one, for there is a val_dataloader',
    ),
    'no optimizer': (
        lambda i: i.drop('optim_wrapper.optimizer'),
        r'optim_wrapper\.optimizer: missing; expected one',
    ),
    'clip_grad': setting(
        'optim_wrapper.clip_grad',
        dict(max_nrm=1),
        r'clip_grad\.max_nrm: unknown; expected max_norm',
    ),
    'class weights': setting(
        'model.decode_head.loss_decode.class_weight',
        [1.0, 2.0],
        r'loss_decode\.class_weight: 2 weights; expected 3, one per class',
    ),
    'mode of the test': setting(
        'model.test_cfg', dict(mode='slid'), r"test_cfg\.mode='slid': expected 'whole' or 'slide'"
    ),
    'slide without stride': setting(
        'model.test_cfg',
        dict(mode='slide', crop_size=(8, 8)),
        r'test_cfg\.stride: missing; expected',
    ),
    'pairs without their preprocessor': setting(
        'model.data_preprocessor.type',
        'SegDataPreProcessor',
        r'unlabeled: model\.data_preprocessor\.type is SegDataPreProcessor, which takes no pairs',
    ),
    'transforms that do not fit': (
        lambda i: i.drop(f'{LABELED}.pipeline.0'),
        r'l\d\.png: labeled\.pipeline does not run on it \(KeyError: .* in \S+\.py:\d+\); expected',
    ),
    'pairs for a model that takes none': (
        lambda i: (
            i.drop('model.auxiliary_head'),
            i.put('custom_hooks', []),
            i.set('model.type', 'EncoderDecoder'),
        ),
        r"model\.type='EncoderDecoder': takes no pairs; expected a model that does, such as CCTSeg",
    ),
    'epochs of an endless sampler': (
        lambda i: (i.drop('train_cfg'), i.set('train_cfg', dict(by_epoch=True, max_epochs=2))),
        r'train_cfg: counts epochs, and train_dataloader\.sampler PairSampler has no end',
    ),
    'schedule by epoch': setting(
        'param_scheduler.0.by_epoch', True, r'param_scheduler\.0\.by_epoch: True, and train_cfg'
    ),
    'checkpoints by epoch': setting(
        'default_hooks.checkpoint.by_epoch', True, r'checkpoint\.by_epoch: True, and train_cfg'
    ),
}
COMMAND_LINES = {
    'option without =': (
        lambda i: i.run(*TRAIN, '--cfg-options', 'train_cfg.max_iters', '5'),
        r"--cfg-options: 'train_cfg\.max_iters'; expected KEY=VALUE",
    ),
    'launcher': (
        lambda i: i.run(*TRAIN, '--launcher', 'pytorch'),
        r'--launcher pytorch: RANK is not set; expected to be started by',
    ),
    'no name of a file': (
        lambda i: i.run('plot_ramps', 'tiny.py', '--out', ''),
        r'error: \.: is a folder; expected the name of a file to write',
    ),
    'work dir is a file': (
        lambda i: (i.text('w', 'x'), i.run('train', 'tiny.py', '--work-dir', 'w')),
        r'w: File exists',
    ),
    'name too long': (
        lambda i: i.run('train', 'tiny.py', '--work-dir', 'n' * 300),
        r'File name too long',
    ),
    **{
        f'{tool}: seed {seed}': (
            lambda i, arguments=(tool, *rest, option, seed): i.run(*arguments),
            rf'{option}: {seed}; expected 0 to 4294967295',
        )
        for seed in ('-1', '4294967296', 'x')
        for tool, option, *rest in (
            ('make_splits', '--seed', '--images', 'data/images', '-n', 2, '--out', 's'),
            ('rank_unlabeled', '--seed', 'tiny.py', 'x.pth', '--from-config', '--out', 'r'),
            ('ablation', '--seeds', 'tiny.py', '--grid', '--out', 'a'),
        )
    },
    'name of a list': (
        lambda i: (
            shutil.copy(i.cct.data / 'images/u1.png', i.cct.data / 'images/u\n9.png'),
            i.run('make_splits', '--images', 'data/images', '-n', 2, '--out', 's'),
        ),
        r"2_\w+\.txt: 'u\\n9' cannot be a line of a list; expected an image name without",
    ),
    'predict: device': (
        lambda i: i.run(
            'predict', 'tiny.py', i.trained.checkpoint, 'data/images', '--out', 'o',
            '--device', 'gpu7',
        ),
        r"--device: 'gpu7'; expected cpu, cuda, cuda:1 or mps",
    ),
    'predict: no such GPU': (
        lambda i: i.run(
            'predict', 'tiny.py', i.trained.checkpoint, 'data/images', '--out', 'o',
            '--device', 'cuda:77',
        ),
        r'--device: cuda:77; there are',
    ),
}  # fmt: skip
LISTS = {
    'no list': (
        lambda i: i.set(f'{LABELED}.ann_file', 'gone.txt'),
        r'labeled: .*gone.txt: no such file; expected a text file',
    ),
    'empty list': (
        lambda i: i.text('empty.txt', '', f'{LABELED}.ann_file'),
        r'empty.txt: the list is empty; expected',
    ),
    'name twice': (
        lambda i: i.text('twice.txt', 'l0\nl0\n', f'{LABELED}.ann_file'),
        r'twice.txt: l0 is listed twice; expected every image once',
    ),
    'name with and without extension': (
        lambda i: i.text('both.txt', 'l0\nl0.png\n', f'{LABELED}.ann_file'),
        r'both.txt: l0 and l0.png are the same image; expected every image once',
    ),
    'list in UTF-16': (
        lambda i: i.text('wide.txt', 'l0\nl1\n'.encode('utf-16'), f'{LABELED}.ann_file'),
        r'wide.txt: cannot be read \(byte 0xff at 0 is not UTF-8\); expected .*UTF-8',
    ),
    'unknown name': (
        lambda i: i.text('names.txt', 'l0\nl9\n', f'{LABELED}.ann_file'),
        r'names.txt: no image l9 in .*images; expected one',
    ),
    'no text': (
        lambda i: i.text('names.txt', b'\xff\xd8\xff', f'{LABELED}.ann_file'),
        r'names.txt: cannot be read .*; expected a text file',
    ),
    'no folder of images': (
        lambda i: i.set(f'{LABELED}.image_dir', 'gone'),
        r'labeled: .*gone: no such folder; expected a folder of images',
    ),
    'no folder of masks': (
        lambda i: i.set(f'{LABELED}.mask_dir', 'gone'),
        r'labeled: .*gone: no such folder; expected the masks',
    ),
    'images for masks': (
        lambda i: i.set(f'{LABELED}.mask_dir', 'images'),
        r'FolderDataset\.mask_dir: .*images is image_dir too; expected',
    ),
    'no labelled image': (
        lambda i: [i.remove(f'masks/l{n}.png') for n in range(3)],
        r"labeled: .*images: no image belongs to subset 'labeled'; expected images with a mask",
    ),
    'subset': (
        lambda i: i.set(f'{LABELED}.subset', 'labelled'),
        r"FolderDataset\.subset: 'labelled'; expected one of labeled",
    ),
    'class twice': (
        lambda i: i.set(f'{LABELED}.classes', ('a', 'b', 'a')),
        r"FolderDataset\.classes: \('a', 'b', 'a'\); expected every name once",
    ),
    'no class': (
        lambda i: i.set(f'{LABELED}.classes', ()),
        r'FolderDataset\.classes: empty; expected the class names',
    ),
    'stem twice': (
        lambda i: shutil.copy(i.cct.data / 'images/l0.png', i.cct.data / 'images/l0.bmp'),
        r'l0.png: differs from l0.bmp in its extension only; expected one image',
    ),
}
FILES = {
    'dangling link': (
        lambda i: (
            i.remove('images/u1.png'),
            (i.cct.data / 'images/u1.png').symlink_to('gone.png'),
        ),
        r'images/u1.png: a link to gone.png, which is not there; expected an image',
    ),
    'float image': (
        lambda i: i.replace('images/l1.png', '.tif', np.ones((32, 40), np.float32)),
        r'images/l1.tif: cannot be read \(no image that cv2 decodes.*\); expected a readable image',
    ),
    'unlabelled float image': (
        lambda i: i.replace('images/u1.png', '.tif', np.ones((32, 40), np.float32)),
        r'images/u1.tif: cannot be read \(no image that cv2 decodes.*\); expected a readable image',
    ),
    'truncated TIFF': (
        lambda i: i.truncate('images/u1.png', '.tif', 1900),
        r'images/u1.tif: cannot be read \(.*\); expected a readable image',
    ),
    'order of the classes': (
        lambda i: i.set(f'{VAL}.classes', ('thing', 'ground', 'other')),
        r'val_dataloader\.dataset: class 0 is thing, in the data set ground; expected the same',
    ),
    'no mask': (
        lambda i: (
            i.text('names.txt', 'l0\nl1\n', f'{LABELED}.ann_file'),
            i.remove('masks/l1.png'),
        ),
        r'l1.png: no mask for this image of .*names.txt; expected .*masks/l1.png',
    ),
    'label id': (
        lambda i: i.mask('masks/l1.png', np.full((32, 40), 7, np.uint8)),
        r'masks/l1.png: label id 7 outside the classes; expected 0 to 2, or 255',
    ),
    'masks that are void': (
        lambda i: i.masks(np.full((32, 40), 255, np.uint8)),
        r'labeled: all 3 masks are 255 \(ignored\) alone; expected class ids from 0 to 2',
    ),
    'black and white masks': (
        lambda i: (
            i.masks(np.uint8([[0, 255]] * 32).repeat(20, 1)),
            i.set(f'{LABELED}.classes', ('ground', 'thing')),
        ),
        r'the 3 masks hold 0 and 255 alone.* expected 0 for ground and 1 for thing',
    ),
    'masks among the images': (
        lambda i: (
            shutil.move(i.cct.data / 'masks', i.cct.data / 'images/masks'),
            i.set(f'{LABELED}.mask_dir', 'images/masks'),
        ),
        r'FolderDataset\.mask_dir: .*images/masks lies in image_dir .*; expected a folder beside',
    ),
    'size of a mask': (
        lambda i: i.mask('masks/l1.png', np.zeros((9, 40), np.uint8)),
        r'masks/l1.png: 40×9 pixels; expected 40×32, the size of its image',
    ),
    'image of one row': (
        lambda i: (
            i.mask('images/l1.png', np.zeros((1, 40, 3), np.uint8)),
            i.mask('masks/l1.png', np.zeros((1, 40), np.uint8)),
        ),
        r'masks/l1.png: 40×1 pixels; expected 2 or more on each side',
    ),
    'colour mask': (
        lambda i: i.mask('masks/l1.png', np.zeros((32, 40, 3), np.uint8)),
        r'masks/l1.png: a mask of Pillow mode RGB; expected one channel',
    ),
    'truncated mask': (
        lambda i: i.truncate('masks/l1.png', cut=40),
        r'masks/l1.png: cannot be read \(.*\); expected a readable mask',
    ),
    'truncated labelled JPEG with a good header': (
        lambda i: i.truncate('images/l1.png', '.jpg'),
        r'images/l1.jpg: cannot be read \(.*truncated.*\); expected a readable image',
    ),
    'truncated unlabelled JPEG with a good header': (
        lambda i: i.truncate('images/u1.png', '.jpg'),
        r'images/u1.jpg: cannot be read \(.*truncated.*\); expected a readable image',
    ),
    'text for an image': (
        lambda i: i.text('data/images/u1.png', 'no image'),
        r'images/u1.png: cannot be read \(.*\); expected a readable image',
    ),
    'empty image': (
        lambda i: i.text('data/images/l1.png', ''),
        r'images/l1.png: cannot be read \(.*\); expected a readable image',
    ),
    'no validation folder': (
        lambda i: i.remove('val_images'),
        r'val_images: no such folder; expected a folder of images',
    ),
    'no validation list': (
        lambda i: i.set(f'{VAL}.ann_file', 'gone.txt'),
        r'gone.txt: no such file; expected a text file',
    ),
    'no validation mask': (
        lambda i: (i.set(f'{VAL}.subset', 'all'), i.remove('val_masks/v1.png')),
        r'val_dataloader\.dataset: .*v1.png: no mask is named for this labelled image; expected',
    ),
    'label id in validation': (
        lambda i: i.mask('val_masks/v1.png', np.full((32, 40), 7, np.uint8)),
        r'val_dataloader\.dataset: .*v1.png: label id 7 outside the classes; expected 0 to 2',
    ),
    'truncated validation image': (
        lambda i: i.truncate('val_images/v1.png'),
        r'val_dataloader\.dataset: .*v1.png: cannot be read .* expected a readable image',
    ),
    'damaged validation image with a good end': (
        lambda i: i.damage('val_images/v1.png'),
        r'val_dataloader\.dataset: .*v1.png: cannot be read .* expected a readable image',
    ),
    'masks for unlabelled images': (
        lambda i: i.set(
            f'{UNLABELED}.pipeline', i.cct.config.train_dataloader.dataset.labeled.pipeline
        ),
        r'unlabeled\.pipeline: LoadAnnotations reads masks; expected a pipeline without it',
    ),
    'nothing packed': (
        lambda i: i.drop(f'{LABELED}.pipeline.5'),
        r'labeled\.pipeline: gives no inputs and data_samples; expected PackSegInputs',
    ),
    'images of several sizes': (
        lambda i: (i.drop(f'{LABELED}.pipeline.3'), i.set('model.data_preprocessor.size', None)),
        r'labeled images of .*×.* in one batch; expected one size',
    ),
}  # fmt: skip
CHECKPOINTS = {
    'resume: none': (
        lambda i: i.run(*TRAIN, '--resume', 'gone.pth'),
        r'gone.pth: no such checkpoint file',
    ),
    'resume: text': (
        lambda i: (i.text('text.pth', 'hello'), i.run(*TRAIN, '--resume', 'text.pth')),
        r'text.pth: cannot be read \(.*\); expected a whole file',
    ),
    'resume: truncated': (
        lambda i: (
            i.text('cut.pth', i.trained.checkpoint.read_bytes()[:-99]),
            i.run(*TRAIN, '--resume', 'cut.pth'),
        ),
        r'cut.pth: cannot be read \(.*\); expected a whole file',
    ),
    'resume: weights alone': (
        lambda i: (
            i.checkpoint('bare.pth', lambda content: content['state_dict']),
            i.run(*TRAIN, '--resume', 'bare.pth'),
        ),
        r'--resume: bare.pth has no meta, optimizer, message_hub; expected a checkpoint that a tr',
    ),
    'resume: other classes': (
        lambda i: (i.checkpoint('two.pth', fewer_classes), i.run(*TRAIN, '--resume', 'two.pth')),
        r'two.pth: does not fit the config in 1 .*decode_head\S+ is \(2, 6, 1, 1\), expected \(3',
    ),
    'load_from: none': (
        lambda i: i.set('load_from', 'gone.pth'),
        r'gone.pth: no such checkpoint file',
    ),
    'load_from: none of its weights fits': (
        lambda i: (
            i.checkpoint('other.pth', lambda _: dict(state_dict=dict(other=torch.ones(2)))),
            i.set('load_from', 'other.pth'),
        ),
        r"load_from='other\.pth': has 0 of the \d+ weights of the model in its shape; expected at",
    ),
    'load_from: under half of its weights fit': (
        lambda i: (
            i.checkpoint('few.pth', third_of_weights),
            i.set('load_from', 'few.pth'),
        ),
        r"load_from='few\.pth': has [1-9]\d* of the \d+ weights of the model in its shape; expect",
    ),
    'test: none': (lambda i: i.test('gone.pth'), r'gone.pth: no such checkpoint file'),
    'test: order of the classes': (
        lambda i: (i.set(f'{TEST}.classes', ('thing', 'ground', 'other')), i.test()),
        r'the checkpoint: class 0 is ground, in the data set thing; expected the same order',
    ),
    'test: text': (
        lambda i: (i.text('text.pth', 'hello'), i.test('text.pth')),
        r'text.pth: cannot be read \(.*\); expected a whole file',
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
    'test: no pipeline for tta': (
        lambda i: i.test(None, '--tta'),
        r'tiny.py: no tta_model; expected one for this test',
    ),
    'test: nobody writes predictions': (
        lambda i: (i.set('test_evaluator.type', 'DumpResults'), i.test(None, '--out', 'png')),
        r'tiny.py: --out needs a test_evaluator of type IoUMetric or',
    ),
    'predict: other classes': (
        lambda i: (i.checkpoint('two.pth', fewer_classes), i.predict('two.pth')),
        r'two.pth: does not fit the config in 1 of',
    ),
    'predict: text': (
        lambda i: (i.text('text.pth', 'hello'), i.predict('text.pth')),
        r'text.pth: cannot be read \(.*\); expected a whole file',
    ),
    'predict: no folder': (
        lambda i: i.predict(images='gone'),
        r'gone: no such folder; expected a folder of images',
    ),
    'predict: into the images': (
        lambda i: i.predict(out='data/images/out'),
        r'--out: data/images/out lies in the folder .*data/images, which is read',
    ),
    'splits: no number': (
        lambda i: i.split('--list', 'names.txt'),
        r'-n: missing; expected one or more numbers',
    ),
    'splits: too many': (
        lambda i: i.split('--list', 'names.txt', '-n', 4),
        r'number of labelled images: 4; expected 1 to 3',
    ),
    'splits: none': (
        lambda i: i.split('--list', 'names.txt', '-n', 0),
        r'number of labelled images: 0; expected 1 to 3',
    ),
    'splits: name with and without extension': (
        lambda i: (
            i.text('both.txt', 'a\na.png\nb\n'),
            i.run('make_splits', '--list', 'both.txt', '-n', 1, '--out', 'splits'),
        ),
        r'both.txt: a and a.png are the same image; expected every image once',
    ),
    'splits: no list': (
        lambda i: i.split('--list', 'gone.txt', '-n', 1),
        r'gone.txt: no such file; expected a text file',
    ),
    'splits: no folder': (
        lambda i: i.split('--images', 'gone', '-n', 1),
        r'gone: no such folder; expected a folder of images',
    ),
}
REHEARSAL = {
    'save_best': (
        lambda i: i.set('default_hooks.checkpoint.save_best', 'mIOU'),
        r"checkpoint\.save_best='mIOU': no such metric; expected aAcc, mIoU, mAcc or auto",
    ),
    'iou_metrics': (
        lambda i: i.set('val_evaluator.iou_metrics', ['IoU']),
        r"val_evaluator\.iou_metrics=\['IoU'\]: expected some of mIoU, mDice, mFscore",
    ),
    'validation without masks': (
        lambda i: i.drop(f'{VAL}.pipeline.1'),
        r'val_dataloader\.dataset\.pipeline: .*v0.png: comes without its mask; expected LoadAnn',
    ),
    'validation with a crop': (
        lambda i: i.cct.config.val_dataloader.dataset.pipeline.insert(
            2, dict(type='RandomCrop', crop_size=(16, 16))
        ) or i.cct.write(),
        r'v0.png: a mask of 16×16 pixels and a prediction of 40×32; expected .* no crop',
    ),
    'validation without packing': (
        lambda i: i.drop(f'{VAL}.pipeline.2'),
        r'model\.data_preprocessor: a batch without inputs; expected PackSegInputs',
    ),
    'validation transform': (
        lambda i: i.set(f'{VAL}.pipeline.1.imdecode_backend', 'magick'),
        r'v0\.png: val_dataloader\.dataset\.pipeline does not run on it \(.*magick.* in mm.*:\d+\)',
    ),
    'palette': (
        lambda i: i.set(f'{VAL}.palette', [[0, 0, 0], [9, 9, 9], [1, 300, 1]]),
        r'val_dataloader\.dataset\.metainfo\.palette: \[1, 300, 1\]; expected red, green and blue',
    ),
}  # fmt: skip


def table(content, expected):
    """A row for a table of image-level labels."""

    def spoil(i):
        i.text('t.csv', content)
        i.run(
            'make_image_labels', '--csv', 't.csv', '--images', 'data/images', '--classes',
            'ground', 'thing', 'other', '--out', 'labels.json',
        )  # fmt: skip

    return spoil, expected


def image_labels(damage, expected):
    """A row for an annotation file of image-level labels, from which labels are to be made."""

    def spoil(i):
        pytest.importorskip('mmpretrain', reason='it reads the file (extra `weak`)')
        weak = tiny_weak.make_weak(i.cct.folder / 'weak')
        file = weak.root / 'labels.json'
        file.write_bytes(damage(file.read_text()))
        i.run(
            'make_pseudo_labels', weak.config, weak.checkpoint, '--out', weak.out, '--workers', 0,
            '--no-crf',
        )  # fmt: skip

    return spoil, rf'labels\.json: {expected}'


IMAGE_LABELS = {
    'table: header': table(
        'file,class\nl0,thing\n', r't\.csv: columns file,class; expected image,'
    ),
    'table: three columns': table(
        'image,labels\nl0,thing,other\n', r't\.csv, line 2: 3 columns; expected 2, image,labels'
    ),
    'table: one column': table('image,labels\n"l0\nl1"\n', r"t\.csv, line 3: no image 'l0"),
    'table: duplicate row': table(
        'image,labels\nl0,thing\nl0.png,other\n', r't\.csv, line 3: l0 is there twice; expected ev'
    ),
    'table: class': table(
        'image,labels\nl0,thnig\n', r"t\.csv, line 2: no class 'thnig'; expected"
    ),
    'table: image': table('image,labels\nl9,thing\n', r"t\.csv, line 2: no image 'l9'; expected"),
    'table: Latin-1': table(
        'image,labels\nl0,t\xe9\n'.encode('latin-1'), r't\.csv: cannot be read \(byte 0xe9 at 17'
    ),
    'table: UTF-16': table(
        'image,labels\n'.encode('utf-16-le'), r't\.csv: cannot be read \(a zero'
    ),
    'table: empty': table('', r't\.csv: columns none; expected image,labels'),
    'image labels: torn': image_labels(
        lambda text: text[:90].encode(), r'is no JSON \(.*\); expected image-level labels'
    ),
    'image labels: no list': image_labels(
        lambda text: text.replace('data_list', 'data').encode(), r'no data_list; expected image-lev'
    ),
    'image labels: label -1': image_labels(
        lambda text: text.replace('[0]', '[-1]').encode(),
        r'data_list\[0\]\.gt_label=\[-1\]: -1 is no class id; expected 0 to 1',
    ),
    'image labels: UTF-16': image_labels(
        lambda text: text.encode('utf-16'), r'cannot be read \(byte 0xff at 0 is not UTF-8\)'
    ),
    'image labels: image': image_labels(
        lambda text: text.replace('"b.jpg"', 'null').encode(), r'data_list\[1\]\.img_path=None: exp'
    ),
}
TABLE = {
    **IMAGE_LABELS,
    **REHEARSAL,
    **CONFIGS,
    **PRETRAINED,
    **STRUCTURE,
    **SETTINGS,
    **WHOLE,
    **COMMAND_LINES,
    **LISTS,
    **FILES,
    **CHECKPOINTS,
}


def test_the_table_is_long():
    assert len(TABLE) >= 40


@pytest.mark.parametrize('name', TABLE)
def test_one_line_and_an_exit_code(name, cct, trained, capfd):
    spoil, expected = TABLE[name]
    kept = cct.folder / 'work' / 'best_mIoU_iter_1.pth'
    kept.parent.mkdir()
    kept.write_bytes(b'an earlier checkpoint')
    inputs = Inputs(cct, trained)
    spoil(inputs)
    assert cct.tool(*inputs.arguments) != 0
    out, err = capfd.readouterr()
    assert 'Traceback' not in out + err
    (line,) = [line for line in err.splitlines() if 'error: ' in line]
    assert re.search(expected, line), line
    assert kept.read_bytes() == b'an earlier checkpoint'


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
