import logging
import re
from types import SimpleNamespace

import pytest
import torch
from mmengine.optim import OptimWrapper
from mmengine.runner import Runner
from web import serve

from mmseg_cct.cli.start import _read_settings
from mmseg_cct.config.load import load_config
from mmseg_cct.datasets import PairSampler, SemiSegDataset
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.files import check_pairs


def test_images_behind_an_address_are_checked_and_loaded(tree):
    with serve(tree.root) as address:
        dirs = dict(img_path=f'{address}/images', seg_map_path=f'{address}/masks')
        here = dict(data_root='', data_prefix=dirs)
        dataset = SemiSegDataset(
            tree.config('labeled', ann_file=f'{tree.root}/labeled.txt', **here),
            tree.config('unlabeled', ann_file=f'{tree.root}/unlabeled.txt', **here),
        )
        check_pairs(dataset)
        item = dataset[PairSampler(dataset, seed=0).draw(0)]
        assert item['inputs']['labeled'].shape == item['inputs']['unlabeled'].shape == (3, 12, 12)
        tree.image('u0').unlink()
        with pytest.raises(UserError, match=rf'{address}/images/u0\.jpg: cannot be read \(.*404'):
            check_pairs(dataset)


UNLABELED = 10582 - 1464  # of VOC, augmented


def command_of(page, gpus):
    """The options of the command for so many GPUs, and its row of the table."""
    text = page.replace('\\\n', '')
    start = {1: '^mmseg-cct train', 16: 'GPUS=16 .*'}.get(gpus, 'tools/dist_train.sh')
    number = f' {gpus}' if start.endswith('dist_train.sh') else ''
    command = rf'{start} configs/cct/cct_r50_voc_1464\.py{number}( +--.*)?$'
    options = re.search(command, text, re.M)
    row = re.search(rf'^\| {gpus} \|(.*)\|$', page, re.M)[1]
    return (options[1] or '').split(), [float(cell.replace(',', '')) for cell in row.split('|')]


@pytest.mark.parametrize('gpus', [1, 2, 5, 8, 16])
def test_the_paper_is_trained_on_any_number_of_gpus(gpus, project_root):
    page = (project_root / 'docs' / 'performance.md').read_text(encoding='utf-8')
    words, row = command_of(page, gpus)
    options = _read_settings([word for word in words if '=' in word])
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
