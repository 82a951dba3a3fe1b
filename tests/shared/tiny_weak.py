"""A tiny classifier and a few images with image-level labels and masks."""

import json
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config

CLASSES = ('ground', 'thing', 'other')
PALETTE = [[0, 0, 0], [200, 0, 0], [0, 200, 0]]
CONFIG = """
default_scope = 'mmpretrain'
custom_imports = dict(imports=['mmseg_cct.plugin'], allow_failed_imports=False)
model = dict(
    type='ImageClassifier',
    data_preprocessor=dict(
        type='ClsDataPreprocessor', mean=[120.0] * 3, std=[60.0] * 3, to_rgb=True),
    backbone=dict(
        type='mmseg.ResNet', depth=18, num_stages=2, base_channels=4, stem_channels=4,
        strides=(1, 2), dilations=(1, 1), out_indices=(1, )),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='MultiLabelLinearClsHead', in_channels=8, num_classes=2))
pseudo_labels = dict(
    images=dict(
        type='MultiLabelDataset', ann_file='ROOT/labels.json', data_prefix='ROOT/images',
        serialize_data=False),  # its garbage collection would take most of the tests' time
    segmentation=dict(
        type='BaseSegDataset', metainfo=dict(classes=CLASSES, palette=PALETTE),
        data_root='ROOT', data_prefix=dict(img_path='images', seg_map_path='masks'),
        serialize_data=False),
    background='ground',
    scales=(0.5, 1.0))
"""
# `d` has no class at all
LABELS = {'a': [0], 'b': [1], 'more/c': [0, 1], 'd': []}
SIZES = {'a': (24, 32), 'b': (24, 32), 'more/c': (24, 32), 'd': (20, 26)}


@pytest.fixture
def weak(tmp_path, monkeypatch):
    """What `make_weak` writes, in a folder that is the working directory."""
    pytest.importorskip('mmpretrain', reason='the classifier is made of its parts (extra `weak`)')
    monkeypatch.chdir(tmp_path)
    return make_weak(tmp_path)


def make_weak(tmp_path):
    """Writes the config, its checkpoint and the data into a folder."""
    rng = np.random.default_rng(0)
    for folder in ('images/more', 'masks/more'):
        (tmp_path / folder).mkdir(parents=True)
    for name, size in SIZES.items():
        image = cv2.resize(rng.integers(0, 256, (4, 5, 3), np.uint8), size[::-1])
        cv2.imwrite(str(tmp_path / f'images/{name}.jpg'), image)
        ids = rng.integers(0, 3, (4, 5), np.uint8)
        mask = cv2.resize(ids, size[::-1], interpolation=cv2.INTER_NEAREST)
        cv2.imwrite(str(tmp_path / f'masks/{name}.png'), mask)
    listed = [dict(img_path=f'{name}.jpg', gt_label=ids) for name, ids in LABELS.items()]
    labels = dict(metainfo=dict(classes=CLASSES[1:]), data_list=listed)
    (tmp_path / 'labels.json').write_text(json.dumps(labels))
    text = CONFIG.replace('ROOT', str(tmp_path))
    text = text.replace('=CLASSES', f'={CLASSES}').replace('=PALETTE', f'={PALETTE}')
    config = tmp_path / 'cam.py'
    config.write_text(text)

    from mmengine.registry import init_default_scope
    from mmpretrain.registry import MODELS

    init_default_scope('mmpretrain')
    torch.manual_seed(0)
    model = MODELS.build(Config.fromfile(config).model)
    with torch.no_grad():  # both classes are seen somewhere
        model.head.fc.weight.copy_(torch.randn_like(model.head.fc.weight))
    torch.save(dict(state_dict=model.state_dict()), tmp_path / 'cam.pth')
    return SimpleNamespace(
        root=tmp_path,
        config=config,
        checkpoint=str(tmp_path / 'cam.pth'),
        names=list(LABELS),
        out=str(tmp_path / 'out'),
        images=tmp_path / 'images',
        masks=tmp_path / 'masks',
        classes=CLASSES,
        palette=PALETTE,
        load=lambda: Config.fromfile(config),
    )
