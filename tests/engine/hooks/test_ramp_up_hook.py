import math
from types import SimpleNamespace

import pytest
import torch
from mmengine.registry import HOOKS

from mmseg_cct.errors import UserError
from mmseg_cct.models import MSEConsistency

WEIGHT = 'auxiliary_head.loss_consistency.loss_weight'


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


@pytest.mark.parametrize(
    'attribute',
    [
        'auxilary_head.x',  # a typo
        'auxiliary_head.loss_consistency.*.x',  # no children
        'auxiliary_head.flag',
        'auxiliary_head.loss_consistency',
    ],
)
def test_what_is_no_number_in_the_model_ends_the_run_at_its_start(attribute):
    with pytest.raises(UserError) as error:
        make_hook(attribute).before_train(make_runner())
    assert error.value.problems[0].key == f'RampUpHook.attribute={attribute!r}'
