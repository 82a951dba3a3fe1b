"""Which component is named where a constructor refuses its arguments."""

import pytest
from mmengine.config import Config
from mmengine.registry import DATASETS, HOOKS

from mmseg_cct.config.load import load_config
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.failures import (
    Failed,
    config_errors_as_one_line,
    refusal,
    require_buildable,
)

FCN = dict(type='FCNHead', in_channels=6, channels=6, num_classes=3)
FLIP = dict(type='RandomFlip', prob=0.1)
LABELED = 'train_dataloader.dataset.labeled'


def test_a_config_that_trains_can_be_built(cct):
    config = load_config(str(cct.file), {})
    before = config.to_dict()
    require_buildable(config)
    assert config.to_dict() == before


@pytest.mark.parametrize(
    ('key', 'value', 'expected'),
    [
        ('model.decode_head.type', 'PixelShuffleHed', r"decode_head\.type: no 'PixelShuffleHed'"),
        ('model.backbone.depth', 7, r'^model\.backbone: ResNet refuses .*: invalid dep'),
        (
            'model.neck', dict(_delete_=True, type='JPU', in_channels=[8]),
            r'^model\.neck: JPU refuses .*: AssertionError at assert isinst',
        ),
        (
            'model.auxiliary_head', [FCN, dict(FCN, loss_decod={})],
            r"^model\.auxiliary_head\.1: .* 'loss_decod'; ",
        ),
        (
            'model.decode_head.loss_decode', dict(type='PairwiseVariance', num_decoders=1),
            r'^model\.decode_head\.loss_decode\.num_decoders=1: expected a whole number',
        ),
        ('optim_wrapper.optimizer.rl', 1, r"^optim_wrapper\.optimizer: .*'rl'; .* SGD takes: "),
        ('optim_wrapper.optimizer.lr', -1, r'^optim_wrapper\.optimizer: SGD refuses .* rate: -1$'),
        ('param_scheduler.0.powr', 1, r"^param_scheduler\.0: .*'powr'"),
        ('param_scheduler.0.begin', 6, r'^param_scheduler\.0: PolyLR refuses .*begin=6, end=6'),
        ('default_hooks.logger.intervl', 1, r"^default_hooks\.logger: .*'intervl'"),
        ('test_evaluator.type', 'IoUMetrik', r"^test_evaluator\.type: no 'IoUMetrik'"),
        (f'{LABELED}.pipeline.0.typ', 'X', rf"^{LABELED}\.pipeline\.0: .*'typ'"),
        (
            f'{LABELED}.pipeline', [FLIP, dict(FLIP, prob='x')],
            rf'^{LABELED}\.pipeline\.1: RandomFlip refuses its arguments: probs mus',
        ),
    ],
)  # fmt: skip
def test_a_refusal_is_traced_to_its_component(cct, key, value, expected):
    config = load_config(str(cct.file), {})
    config.merge_from_dict({key: value})
    with pytest.raises(UserError, match=expected):
        require_buildable(config)


def test_a_folder_that_nobody_may_read_or_that_is_not_there_is_named(cct):
    part = Failed('train_dataloader.dataset', dict(type='FolderDataset'), DATASETS)
    line = str(refusal(part, PermissionError(13, 'Permission denied', 'data/images')))
    assert line.endswith('FolderDataset refuses its arguments: data/images: Permission denied')
    labeled = dict(type='BaseSegDataset', data_prefix=dict(img_path='gone'), metainfo={})
    cct.config.train_dataloader.dataset.labeled = labeled
    match = rf'^{LABELED}: gone: no such folder; expected the images there'
    with pytest.raises(UserError, match=match), config_errors_as_one_line(cct.config):
        DATASETS.build(cct.config.train_dataloader.dataset.labeled)


def test_a_bug_is_no_refusal(monkeypatch):
    with pytest.raises(KeyError, match='a bug'), config_errors_as_one_line(Config()):
        raise KeyError('a bug')

    @HOOKS.register_module(name='Broken', force=True)
    def broken():
        raise KeyError('not in the config')

    with pytest.raises(KeyError, match='not in the config'), config_errors_as_one_line(Config()):
        HOOKS.build(dict(type='Broken'))
    HOOKS.module_dict.pop('Broken')
    # what is explained already stays
    with pytest.raises(UserError, match='mine'), config_errors_as_one_line(Config()):
        raise UserError('mine')
