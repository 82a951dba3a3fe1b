"""What docs/scaling.md says about numbers of GPUs, addresses and long lists."""

import logging
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.dataset import BaseDataset
from mmengine.fileio import BaseStorageBackend, register_backend
from mmengine.optim import OptimWrapper
from mmengine.runner import Runner
from PIL import Image
from web import serve

from mmseg_cct.cli.start import _read_settings
from mmseg_cct.config.load import load_config
from mmseg_cct.datasets import PairSampler, SemiSegDataset
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.files import check_pairs


@pytest.fixture
def served(tmp_path):
    """A folder with an image `a.jpg` and its mask, and the address of a server that shows it."""
    Image.fromarray(np.zeros((6, 8, 3), np.uint8)).save(tmp_path / 'a.jpg')
    Image.fromarray(np.zeros((6, 8), np.uint8)).save(tmp_path / 'a.png')
    (tmp_path / 'list.txt').write_text('a\n')
    with serve(tmp_path) as address:
        yield tmp_path, address


def half(folder, root, labeled):
    prefix = dict(img_path=str(root), **(dict(seg_map_path=str(root)) if labeled else {}))
    load = [dict(type='LoadImageFromFile'), *[dict(type='LoadAnnotations')] * labeled]
    return dict(
        type='BaseSegDataset',
        ann_file=str(folder / 'list.txt'),
        data_prefix=prefix,
        metainfo=dict(classes=('nothing',)),
        pipeline=[*load, dict(type='PackSegInputs')],
    )


def test_images_behind_an_address_are_checked_and_loaded(served):
    folder, address = served
    dataset = SemiSegDataset(half(folder, address, True), half(folder, address, False))
    check_pairs(dataset)
    item = dataset[PairSampler(dataset, seed=0).draw(0)]
    assert item['data_samples']['unlabeled'].img_path == f'{address}/a.jpg'
    assert item['inputs']['labeled'].shape == item['inputs']['unlabeled'].shape == (3, 6, 8)

    (folder / 'a.jpg').unlink()
    with pytest.raises(UserError, match=rf'{address}/a\.jpg: cannot be read \(.*404'):
        check_pairs(dataset)


def test_images_that_the_transform_reads_from_a_backend_are_checked_and_loaded(served):
    folder, _ = served
    image = (folder / 'a.jpg').read_bytes()
    stored = {'a.jpg': image}
    register_backend(
        'stored',
        type(
            'Stored', (BaseStorageBackend,), dict(get=lambda _, path: stored[path], get_text=None)
        ),
        force=True,
    )
    unlabeled = dict(half(folder, '', False), data_prefix=dict(img_path=''))
    unlabeled['pipeline'][0]['backend_args'] = dict(backend='stored')
    dataset = SemiSegDataset(half(folder, folder, True), unlabeled)
    check_pairs(dataset)
    draw = PairSampler(dataset, seed=0).draw(0)
    assert dataset[draw]['inputs']['unlabeled'].shape == (3, 6, 8)

    dataset.unlabeled.pipeline.transforms.insert(1, lambda results: results['mine'])
    with pytest.raises(KeyError, match='mine'):  # not for want of the image
        dataset[draw]

    stored['a.jpg'] = image[:-9]
    with pytest.raises(UserError, match=r'^a\.jpg: cannot be read \('):
        check_pairs(dataset)


def test_a_list_without_masks_is_made_once(served, monkeypatch):
    folder, _ = served
    calls = []
    serialise = BaseDataset._serialize_data
    monkeypatch.setattr(
        BaseDataset, '_serialize_data', lambda self: calls.append(self) or serialise(self)
    )
    SemiSegDataset(half(folder, folder, True), half(folder, folder, False))
    assert len(calls) == 2  # each half once
    with_masks = dict(half(folder, folder, False), data_prefix=dict(img_path='', seg_map_path=''))
    dataset = SemiSegDataset(half(folder, folder, True), with_masks)
    assert len(calls) == 5  # again without the paths
    assert 'seg_map_path' not in dataset.unlabeled.get_data_info(0)


UNLABELED = 10582 - 1464  # of VOC, augmented


def command_of(page, gpus):
    """The options of the command for so many GPUs, and its row of the table."""
    text = page.replace('\\\n', '')
    launched = r'tools/train\.py' if gpus == 1 else r'tools/dist_train\.sh'
    number = '' if gpus == 1 else f' {gpus}'
    options = re.search(
        rf'{launched} configs/cct/cct_r50_voc_1464\.py{number}( --.*)?$', text, re.M
    )
    row = re.search(rf'^\| {gpus} \|(.*)\|$', page, re.M)[1]
    return (options[1] or '').split(), [float(cell.replace(',', '')) for cell in row.split('|')]


@pytest.mark.parametrize('gpus', [1, 2, 5, 8])
def test_the_paper_is_trained_on_any_number_of_gpus(gpus, project_root):
    page = (project_root / 'docs' / 'scaling.md').read_text(encoding='utf-8')
    words, row = command_of(page, gpus)
    options = _read_settings([word for word in words if '=' in word])
    options['auto_scale_lr.enable'] = '--auto-scale-lr' in words
    config = load_config('configs/cct/cct_r50_voc_1464.py', options)

    optimizer = torch.optim.SGD([torch.zeros(1)], config.optim_wrapper.optimizer.lr)
    runner = SimpleNamespace(
        world_size=gpus, _train_dataloader=config.train_dataloader, param_schedulers=None,
        logger=logging.getLogger('test'),
    )  # fmt: skip
    Runner.scale_lr(runner, OptimWrapper(optimizer), config.auto_scale_lr)
    own = config.train_dataloader.batch_size
    joint, length = own * gpus, config.train_cfg.max_iters
    rate = optimizer.param_groups[0]['lr']
    assert row == [own, joint, UNLABELED // joint, length, rate]
    assert rate == pytest.approx(1e-3 * joint)
    assert length == 50 * (UNLABELED // joint) == 10 * config.train_cfg.val_interval
    assert config.param_scheduler.end == length
