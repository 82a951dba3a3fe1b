import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.registry import HOOKS

from mmseg_cct.engine.hooks import iteration_seed_hook


@pytest.fixture(autouse=True)
def restore_random_state():
    states = random.getstate(), np.random.get_state()
    with torch.random.fork_rng():
        yield
    random.setstate(states[0])
    np.random.set_state(states[1])


def draws(seed=0, iteration=0, batch_idx=0):
    hook = HOOKS.build(dict(type='IterationSeedHook'))
    hook.before_train_iter(SimpleNamespace(seed=seed, iter=iteration), batch_idx)
    return random.random(), np.random.rand(), torch.rand(1).item()


def test_same_iteration_gives_the_same_draws_whatever_came_before():
    first = draws(3, 7)
    draws(3, 8)
    assert draws(3, 7, batch_idx=99) == first


def test_every_generator_depends_on_seed_iteration_and_rank(monkeypatch):
    results = [draws(0, 0), draws(0, 1), draws(1, 0)]
    monkeypatch.setattr(iteration_seed_hook, 'get_rank', lambda: 1)
    results.append(draws(0, 0))
    for generator in zip(*results):
        assert len(set(generator)) == 4


def test_seeds_before_other_hooks_draw():
    hook = HOOKS.build(dict(type='IterationSeedHook'))
    assert hook.priority == 'VERY_HIGH'
