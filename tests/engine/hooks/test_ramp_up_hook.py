import math
from types import SimpleNamespace

import pytest
import torch
from mmengine.registry import HOOKS

from mmseg_cct.engine.hooks.ramp_up_hook import SCHEDULES
from mmseg_cct.models import MSEConsistency

WEIGHT = 'auxiliary_head.loss_consistency.loss_weight'

T = 200

# (at 0, at T/2, at T), from the equations
VALUES = dict(
    gaussian=(math.exp(-5), math.exp(-1.25), 1),
    exp=(math.exp(-5), math.exp(-2.5), 1),
    linear=(0, 0.5, 1),
    log=(0, 1 - math.exp(-2.5), 1 - math.exp(-5)),
)


@pytest.mark.parametrize('name', SCHEDULES)
def test_each_rises_within_0_and_1_to_1(name):
    schedule = SCHEDULES[name]
    assert [schedule(t, T) for t in (0, T / 2, T)] == pytest.approx(VALUES[name], abs=1e-12)
    values = [schedule(t, T) for t in range(T + 1)]
    assert values == sorted(values) and len(set(values)) == T + 1
    assert min(values) >= 0 and max(values) <= 1
    assert schedule(-1, T) == values[0]
    assert schedule(0, 0) == schedule(100 * T, T) == 1  # a ramp of length 0 is over at once
    if name == 'log':  # η = min(α, (1 - exp(-5 t/T)) (α - 1/C) + 1/C) rises after T, too
        assert schedule(2 * T, T) == pytest.approx(1 - math.exp(-10), abs=1e-12)
    else:
        assert schedule(T + 1, T) == values[-1] == 1


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.auxiliary_head = torch.nn.Module()
        self.auxiliary_head.loss_consistency = MSEConsistency(loss_weight=1.0)
        self.auxiliary_head.flag = True


def make_runner(model=None, iteration=0):
    logged = {}
    return SimpleNamespace(
        model=model or Model(),
        iter=iteration,
        max_iters=1000,
        logged=logged,
        message_hub=SimpleNamespace(update_scalar=logged.__setitem__),
    )


def make_hook(attribute=WEIGHT, **kwargs):
    return HOOKS.build(dict(dict(type='RampUpHook', attribute=attribute, end=30.0), **kwargs))


def step(hook, **kwargs):
    """A runner after the hook's turn in an iteration."""
    runner = make_runner(**kwargs)
    hook.before_train(runner)
    hook.before_train_iter(runner, batch_idx=0)
    return runner


def value_after(hook, iteration):
    runner = step(hook, iteration=iteration)
    value = runner.model.auxiliary_head.loss_consistency.loss_weight
    assert runner.logged == {f'train/{WEIGHT}': value}
    return value


def test_consistency_weight_ramps_over_the_first_tenth():
    hook = make_hook()
    expected = [30 * math.exp(-5), 30 * math.exp(-2.5), 30, 30, 30]
    values = [value_after(hook, t) for t in (0, 50, 100, 101, 999)]
    assert values == pytest.approx(expected)


def test_an_end_that_is_none_is_the_value_of_the_built_model():
    value = Model().auxiliary_head.loss_consistency.loss_weight
    assert value_after(make_hook(end=None), 50) == value_after(make_hook(end=value), 50)
    up = make_hook(start=None, end=3.0, schedule='linear', fraction=1.0)
    assert [value_after(up, t) for t in (0, 500)] == [value, (value + 3.0) / 2]
    # taken once: not what the ramp itself has set
    hook, runner = make_hook(end=None), make_runner()
    hook.before_train(runner)
    for runner.iter in range(61):
        hook.before_train_iter(runner, 0)
    weight = runner.model.auxiliary_head.loss_consistency.loss_weight
    assert weight == pytest.approx(math.exp(-2))


def test_each_child_of_a_star_has_its_own_end():
    model = torch.nn.Module()
    model.domains = torch.nn.ModuleDict(dict(a=Model(), b=Model()))
    model.domains['b'].auxiliary_head.loss_consistency.loss_weight = 7.0
    attribute = f'domains.*.{WEIGHT}'
    runner = step(make_hook(attribute, end=None), model=torch.nn.DataParallel(model), iteration=50)
    weights = [d.auxiliary_head.loss_consistency.loss_weight for d in model.domains.values()]
    share = math.exp(-2.5)
    assert weights == pytest.approx([share, 7 * share])
    assert runner.logged == {f'train/{attribute}': weights[0]}
