import copy

import pytest
import torch
from mmengine.optim import build_optim_wrapper
from torch import nn

from mmseg_cct.engine.optimizers import BFloat16OptimWrapper

CUSTOM_KEYS = {'0.': dict(lr_mult=0.1), '2.': dict(lr_mult=0.1, decay_mult=0.0)}


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2), nn.Linear(2, 2))


def wrapper(model, constructor, kind='SGD', **options):
    extra = dict(momentum=0.9) if kind == 'SGD' else {}
    cfg = dict(
        type='OptimWrapper',
        optimizer=dict(type=kind, lr=0.1, weight_decay=0.01, **extra, **options),
        paramwise_cfg=dict(custom_keys=copy.deepcopy(CUSTOM_KEYS)),
        constructor=constructor,
    )
    return build_optim_wrapper(model, cfg)


MERGED, PLAIN = 'MergedOptimWrapperConstructor', 'DefaultOptimWrapperConstructor'


@pytest.mark.parametrize('kind', ['SGD', 'AdamW'])
def test_updates_are_those_of_mmengine(kind):
    models = [network(), network()]
    for model, constructor in zip(models, (MERGED, PLAIN)):
        optim = wrapper(model, constructor, kind)
        torch.manual_seed(1)
        for _ in range(3):
            optim.update_params(model(torch.randn(8, 3)).square().mean())
    for merged, plain in zip(*(model.parameters() for model in models)):
        torch.testing.assert_close(merged, plain)


def test_parameters_with_the_same_options_share_a_group():
    groups = wrapper(network(), MERGED).optimizer.param_groups
    assert [(len(g['params']), g['lr'], g['weight_decay']) for g in groups] == [
        (2, pytest.approx(0.01), 0.01),
        (4, 0.1, 0.01),
        (2, pytest.approx(0.01), 0.0),
    ]


def test_the_step_is_fused_unless_the_config_says_otherwise():
    for kind, options, fused in (('AdamW', {}, True), ('AdamW', dict(foreach=True), None)):
        assert wrapper(network(), MERGED, kind, **options).optimizer.defaults['fused'] == fused
    assert wrapper(network(), MERGED, 'SGD').optimizer.defaults['fused'] is None


def test_autocast_covers_the_forward_pass_only():
    model = torch.nn.Linear(4, 4)
    wrapper = BFloat16OptimWrapper(torch.optim.SGD(model.parameters(), lr=0.1))
    with wrapper.optim_context(model):
        inside = model(torch.ones(1, 4))
    assert inside.dtype is torch.bfloat16
    assert model(torch.ones(1, 4)).dtype is torch.float32
    wrapper.update_params(inside.float().sum())
    assert model.weight.dtype is torch.float32
