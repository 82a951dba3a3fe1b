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
        self.auxiliary_head.name = 'a string'
        self.auxiliary_head.flag = True
        self.auxiliary_head.nothing = None


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


def test_bootstrapping_threshold_ramps_from_chance():
    hook = make_hook(start=1 / 21, end=0.9, schedule='log', fraction=0.4)
    for t in (0, 200, 400, 800):  # on its way to 0.9 after T = 400, too
        expected = 1 / 21 + (0.9 - 1 / 21) * (1 - math.exp(-5 * t / 400))
        assert value_after(hook, t) == pytest.approx(expected)


def test_an_end_that_is_none_is_the_value_of_the_built_model():
    value = Model().auxiliary_head.loss_consistency.loss_weight
    assert value_after(make_hook(end=None), 50) == value_after(make_hook(end=value), 50)
    up = make_hook(start=None, end=3.0, schedule='linear', fraction=1.0)
    assert [value_after(up, t) for t in (0, 500)] == [value, (value + 3.0) / 2]


def test_the_built_value_is_taken_once_and_again_after_a_resume():
    hook, runner = make_hook(end=None), make_runner()
    hook.before_train(runner)
    for runner.iter in range(61):
        hook.before_train_iter(runner, 0)
    loss = runner.model.auxiliary_head.loss_consistency
    # a resume builds the model anew; what the ramp has done to the attribute is in no checkpoint
    resumed = Model()
    resumed.load_state_dict(runner.model.state_dict())
    step(make_hook(end=None), model=resumed, iteration=60)
    assert resumed.auxiliary_head.loss_consistency.loss_weight == loss.loss_weight
    assert loss.loss_weight == pytest.approx(math.exp(-2))


def test_each_child_of_a_star_has_its_own_end():
    model = torch.nn.Module()
    model.domains = torch.nn.ModuleDict(dict(a=Model(), b=Model()))
    model.domains['b'].auxiliary_head.loss_consistency.loss_weight = 7.0
    attribute = f'domains.*.{WEIGHT}'
    runner = step(make_hook(attribute, end=None), model=model, iteration=50)
    weights = [d.auxiliary_head.loss_consistency.loss_weight for d in model.domains.values()]
    share = math.exp(-2.5)
    assert weights == pytest.approx([share, 7 * share])
    assert runner.logged == {f'train/{attribute}': weights[0]}


def test_looks_through_a_model_wrapper():
    wrapped = torch.nn.DataParallel(Model())
    step(make_hook(), model=wrapped, iteration=100)
    assert wrapped.module.auxiliary_head.loss_consistency.loss_weight == 30


class WithoutBank(torch.nn.Module):
    """Nothing here can be a part of a path, however near its name."""

    def __init__(self):
        super().__init__()
        self._auxiliary_head = 1.0
        self.auxiliary_heads = 'a string'
        self.no_auxiliary_head = True


@pytest.mark.parametrize(
    ('model', 'attribute', 'message'),
    [
        (Model, 'auxilary_head.x', "no 'auxilary_head' there; did you mean auxiliary_head"),
        (Model, f'{WEIGHT[:-6]}wieght', "'loss_wieght' there; did you mean .*loss_weight"),
        (WithoutBank, WEIGHT, "has no 'auxiliary_head' there$"),
        (Model, f'{WEIGHT[:-11]}*.x', r"'\*' stands for modules, and MSEConsistency has none"),
        (Model, 'auxiliary_head.name', 'name.: expected a number, the model has str'),
        (Model, 'auxiliary_head.flag', 'flag.: expected a number, the model has bool'),
        (Model, 'auxiliary_head.nothing', 'nothing.: expected a number, the model has NoneType'),
        (Model, WEIGHT[:-12], 'loss_consistency.: expected a number, the model has MSEConsistency'),
    ],
)
def test_an_attribute_that_is_no_number_offers_what_a_path_may_contain(model, attribute, message):
    with pytest.raises(UserError, match=message):
        make_hook(attribute).before_train(make_runner(model()))
