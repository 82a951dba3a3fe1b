"""Frozen parameters in whole runs on drawn scenes."""

from types import SimpleNamespace

import pytest
import torch
from mmengine.model import MMDistributedDataParallel
from mmengine.optim import OptimWrapper, PolyParamScheduler
from teacher_training import train
from torch import nn

from mmseg_cct.engine.hooks import FreezeHook
from mmseg_cct.errors import UserError


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Linear(2, 2), nn.Linear(2, 2)


def run_of(model, initial_lr=True):
    groups = [
        dict(params=list(model.stem.parameters()), lr=0.0 if initial_lr is None else 0.5),
        dict(params=list(model.head.parameters()), lr=0.0),  # as in a warm-up's first iteration
    ]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    if initial_lr is not None:
        optimizer.param_groups[0]['initial_lr'] = 0.0
        optimizer.param_groups[1]['initial_lr'] = 1.0
    wrapper = OptimWrapper(optimizer)
    log = []
    return SimpleNamespace(
        model=model,
        optim_wrapper=wrapper,
        param_schedulers=None,  # of mmengine, where there is none
        logger=SimpleNamespace(info=log.append),
        log=log,
    )


def wants_gradients(module):
    (answer,) = {parameter.requires_grad for parameter in module.parameters()}
    return answer


@pytest.mark.parametrize(
    ('distributed', 'initial_lr', 'wanted', 'told'),
    [
        (False, True, (False, True), ['2 weights are frozen']),
        (False, None, (False, False), ['4 weights are frozen']),  # no schedule: the rate counts
        (True, True, (True, True), []),  # DDP waits for every gradient
    ],
)
def test_a_rate_of_zero_means_no_gradient(distributed, initial_lr, wanted, told):
    model = Frozen()
    run = run_of(model, initial_lr)
    if distributed:
        run.model = MMDistributedDataParallel.__new__(MMDistributedDataParallel)
    FreezeHook().before_train(run)
    assert (wants_gradients(model.stem), wants_gradients(model.head)) == wanted
    assert [line[:20] for line in run.log] == told


def test_a_schedule_that_lifts_the_rate_is_refused():
    run = run_of(Frozen())
    scheduler = PolyParamScheduler(run.optim_wrapper, 'lr', eta_min=1e-4, end=3)
    run.param_schedulers = [scheduler]
    with pytest.raises(UserError, match=r'^param_scheduler\.eta_min=0\.0001: would lift .* 2 wei'):
        FreezeHook().before_train(run)
    scheduler.eta_min = 0.0
    FreezeHook().before_train(run)


@pytest.mark.slow
def test_the_training_is_the_same(tmp_path):
    """Losses and weights of a training whose frozen layers have gradients nobody uses."""
    key = 'backbone.layer1'
    keys = {'paramwise_cfg': dict(custom_keys={key: dict(lr_mult=0.0)})}
    runs = {}
    for name, hooks in {'with': [dict(type='FreezeHook')], 'without': []}.items():
        runs[name] = train(
            tmp_path / name, dict(type='TeacherHook', decay=0.9), hooks=hooks, optim=keys
        )
    (with_, runner), (without, other) = runs['with'], runs['without']
    assert with_.outputs == without.outputs
    for name, value in other.model.state_dict().items():
        assert torch.equal(runner.model.state_dict()[name], value), name
    frozen = {n for n, p in runner.model.named_parameters() if not p.requires_grad}
    assert frozen == {n for n, _ in runner.model.named_parameters() if n.startswith(key)}
