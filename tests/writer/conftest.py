from types import SimpleNamespace

import numpy as np
import pytest
from folders import save

from mmseg_cct.utils import text
from mmseg_cct.writer.add_cct import add_cct


@pytest.fixture(autouse=True)
def _the_command_is_installed(monkeypatch):
    # whatever environment the tests run in: the tools print it
    monkeypatch.setattr(text, 'shutil', SimpleNamespace(which=lambda name: name))


@pytest.fixture
def data(tmp_path):
    """Eight images of 64×40, four with a mask, and two to validate on."""
    root = tmp_path / 'data' / 'mine'
    rng = np.random.default_rng(0)
    for part, count, masks in (('.', 8, 4), ('val', 2, 2)):
        for index in range(count):
            pixels = rng.integers(0, 256, (40, 64, 3), np.uint8)
            save(root / part / 'images' / f'{index}.jpg', pixels)
            if index < masks:
                save(root / part / 'masks' / f'{index}.png', rng.integers(0, 3, (40, 64), np.uint8))
    return root


@pytest.fixture
def images(tmp_path):
    for index in range(3):
        pixels = np.random.default_rng(index).integers(0, 256, (80, 96, 3), np.uint8)
        save(tmp_path / f'more/{index}.jpg', pixels)
    return tmp_path / 'more'


@pytest.fixture
def write(images, tmp_path):
    def write(config, method='cct', **options):
        return add_cct(config, str(images), str(tmp_path / 'cct.py'), method=method, **options)

    return write


@pytest.fixture
def config_file(tmp_path):
    """A config of one's own, with a hook, an import and a stage at stride 32."""
    (tmp_path / 'own.py').write_text(
        """
custom_imports = dict(imports=['json'])
custom_hooks = [dict(type='EMAHook')]
pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomCrop', crop_size=(32, 32), cat_max_ratio=0.75),
    dict(type='PackSegInputs'),
]
model = dict(
    type='EncoderDecoder',
    data_preprocessor=dict(type='SegDataPreProcessor', size=(32, 32)),
    backbone=dict(type='ResNet', depth=18, out_indices=(0, 1, 2, 3), base_channels=8),
    decode_head=dict(type='FCNHead', in_channels=64, in_index=3, channels=16, num_classes=3),
)
metainfo = dict(classes=('background', 'crack', 'rust'))
images = dict(type='BaseSegDataset', metainfo=metainfo, pipeline=pipeline)
train_dataloader = dict(batch_size=2, dataset=dict(type='RepeatDataset', times=2, dataset=images))
train_cfg = dict(type='IterBasedTrainLoop', max_iters=2)
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01))
work_dir = './work_dirs/own'
"""
    )
    return tmp_path / 'own.py'
