"""Which component is named where a constructor refuses its arguments."""

import copy

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DATASETS, HOOKS, MODELS, OPTIMIZERS, PARAM_SCHEDULERS, DefaultScope

from mmseg_cct.config.load import load_config
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.failures import (
    Failed,
    config_errors_as_one_line,
    refusal,
    require_buildable,
)

CONFIG = Config(
    dict(
        default_scope='mmseg',
        model=dict(
            type='EncoderDecoder',
            backbone=dict(type='ResNet', depth=18),
            decode_head=dict(type='FCNHead', in_channels=6, channels=6, num_classes=3),
            auxiliary_head=[
                dict(type='FCNHead', in_channels=6, channels=6, num_classes=3),
                dict(type='FCNHead', in_channels=7, channels=6, num_classes=3),
            ],
        ),
        train_dataloader=dict(
            dataset=dict(
                type='BaseSegDataset',
                data_root='data',
                data_prefix=dict(img_path='gone'),
                pipeline=[dict(type='RandomFlip', prob=0.5), dict(type='RandomFlip', prob=0.1)],
            )
        ),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
        param_scheduler=dict(type='PolyLR', power=0.9, by_epoch=False, begin=0, end=6),
    )
)
WEIGHTS = [torch.zeros(1, requires_grad=True)]


def build(registry, settings):
    """Builds a part as a runner does: from a copy, with arguments that the config has not."""
    more = {}
    if registry is OPTIMIZERS:
        more = dict(params=WEIGHTS)
    if registry is PARAM_SCHEDULERS:
        more = dict(optimizer=torch.optim.SGD(WEIGHTS, lr=1.0))
    registry.build({**copy.deepcopy(settings), **more})


@pytest.mark.parametrize(
    ('registry', 'section', 'key', 'value', 'message'),
    [
        (MODELS, 'model', 'backbone.depth', 7, r'^model\.backbone: ResNet refuses .*: invalid dep'),
        (
            MODELS, 'model', 'neck', dict(type='JPU', in_channels=[8]),
            r'^model\.neck: JPU refuses .*: AssertionError at assert isinst',
        ),
        (
            MODELS, 'model', 'auxiliary_head.1.loss_decod', {},
            r"^model\.auxiliary_head\.1: .* 'loss_decod'; ",
        ),
        (
            MODELS, 'model', 'auxiliary_head.1.loss_decode',
            dict(type='PairwiseVariance', num_decoders=1),
            r'^model\.auxiliary_head\.1\.loss_decode\.num_decoders=1: expected a whole number',
        ),
        (
            OPTIMIZERS, 'optim_wrapper', 'optimizer.lr', -1,
            r'^optim_wrapper\.optimizer: SGD refuses .* rate: -1$',
        ),
        (
            PARAM_SCHEDULERS, 'param_scheduler', 'begin', 6,
            r'^param_scheduler: PolyLR refuses .*begin=6, end=6',
        ),
        (
            DATASETS, 'train_dataloader', 'dataset.pipeline.1.prob', 'x',
            r'^train_dataloader\.dataset\.pipeline\.1: RandomFlip refuses its arguments: probs mus',
        ),
        (
            DATASETS, 'train_dataloader', 'dataset.lazy_init', False,
            r'^train_dataloader\.dataset: data/gone: no such folder; expected the images there',
        ),
    ],
)  # fmt: skip
def test_a_refusal_is_traced_to_its_component(registry, section, key, value, message):
    config = copy.deepcopy(CONFIG)
    config.merge_from_dict({f'{section}.{key}': value})
    part = config[section]
    part = part.get('optimizer', part.get('dataset', part))
    with pytest.raises(UserError, match=message), config_errors_as_one_line(config):
        build(registry, part)


def test_a_folder_that_nobody_may_read_is_named():
    part = Failed('train_dataloader.dataset', dict(type='FolderDataset'), DATASETS)
    with DefaultScope.overwrite_default_scope('mmseg'):
        line = str(refusal(part, PermissionError(13, 'Permission denied', 'data/images')))
    assert line.endswith('FolderDataset refuses its arguments: data/images: Permission denied')


def test_a_bug_is_no_refusal(monkeypatch):
    with pytest.raises(KeyError, match='a bug'), config_errors_as_one_line(CONFIG):
        raise KeyError('a bug')

    @HOOKS.register_module(name='Broken', force=True)
    def broken():
        raise KeyError('not in the config')

    with pytest.raises(KeyError, match='not in the config'), config_errors_as_one_line(CONFIG):
        HOOKS.build(dict(type='Broken'))
    HOOKS.module_dict.pop('Broken')
    # what is explained already stays
    with pytest.raises(UserError, match='mine'), config_errors_as_one_line(CONFIG):
        raise UserError('mine')


def test_a_config_that_trains_can_be_built(cct):
    config = load_config(str(cct.file), {})
    before = config.to_dict()
    require_buildable(config)
    assert config.to_dict() == before


@pytest.mark.parametrize(
    ('key', 'value', 'expected'),
    [
        ('model.decode_head.type', 'PixelShuffleHed', r"decode_head\.type: no 'PixelShuffleHed'"),
        ('optim_wrapper.optimizer.rl', 1, r"^optim_wrapper\.optimizer: .*'rl'; .* SGD takes: "),
        ('param_scheduler.0.powr', 1, r"^param_scheduler\.0: .*'powr'"),
        ('default_hooks.logger.intervl', 1, r"^default_hooks\.logger: .*'intervl'"),
        ('test_evaluator.type', 'IoUMetrik', r"^test_evaluator\.type: no 'IoUMetrik'"),
        (
            'train_dataloader.dataset.labeled.pipeline.0.typ', 'X',
            r"^train_dataloader\.dataset\.labeled\.pipeline\.0: .*'typ'",
        ),
    ],
)  # fmt: skip
def test_a_misspelt_part_is_one_line(cct, key, value, expected):
    config = load_config(str(cct.file), {})
    config.merge_from_dict({key: value})
    with pytest.raises(UserError, match=expected):
        require_buildable(config)
