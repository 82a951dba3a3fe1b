"""Tiny data sets on disk."""

import cv2
import numpy as np
import pytest

CLASSES = ('ground', 'thing', 'other')

LABELED_PIPELINE = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomResize', scale=(24, 16), ratio_range=(0.8, 1.5), keep_ratio=True),
    dict(type='RandomCrop', crop_size=(12, 12)),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    dict(type='PackSegInputs'),
]
UNLABELED_PIPELINE = [step for step in LABELED_PIPELINE if step['type'] != 'LoadAnnotations']


class Tree:
    """Images in ``images/``, masks in ``masks/``, lists ``labeled.txt`` and ``unlabeled.txt``."""

    def __init__(self, root, num_unlabeled=4):
        self.root, self.labeled_names = root, ['l0', 'l1', 'l2']
        self.unlabeled_names = [f'u{index}' for index in range(num_unlabeled)]
        rng = np.random.default_rng(0)
        for folder in ('images', 'masks'):
            (root / folder).mkdir(parents=True)
        for name in self.labeled_names + self.unlabeled_names:
            cv2.imwrite(str(self.image(name)), rng.integers(0, 256, (16, 24, 3), np.uint8))
            cv2.imwrite(str(self.mask(name)), rng.integers(0, 3, (16, 24), np.uint8))
        (root / 'labeled.txt').write_text('\n'.join(self.labeled_names))
        (root / 'unlabeled.txt').write_text('\n'.join(self.unlabeled_names))

    def image(self, name):
        return self.root / 'images' / f'{name}.jpg'

    def mask(self, name):
        return self.root / 'masks' / f'{name}.png'

    def config(self, branch, **kwargs):
        config = dict(
            type='BaseSegDataset',
            metainfo=dict(classes=CLASSES),
            data_root=str(self.root),
            data_prefix=dict(img_path='images', seg_map_path='masks'),
            ann_file=f'{branch}.txt',
            pipeline=LABELED_PIPELINE if branch == 'labeled' else UNLABELED_PIPELINE,
            serialize_data=False,  # its garbage collection would take most of the tests' time
        )
        return {**config, **kwargs}


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path / 'set')
