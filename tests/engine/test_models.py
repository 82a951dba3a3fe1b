import random

import numpy as np
import pytest
import torch
from torch import nn

from mmseg_cct.engine.models import eval_sandbox


def draws():
    return random.random(), np.random.rand(), torch.rand(4).tolist()


def test_a_seed_gives_the_same_draws_and_all_is_undone_after_an_error_too():
    model, drawn = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1).eval()), []
    for noise in (1, 2):
        torch.manual_seed(noise)
        states = random.getstate(), torch.get_rng_state()
        with pytest.raises(ZeroDivisionError), eval_sandbox(model, 3):
            drawn.append(draws())
            assert not torch.is_grad_enabled() and not model.training
            raise ZeroDivisionError
        assert random.getstate() == states[0] and torch.equal(torch.get_rng_state(), states[1])
    assert drawn[0] == drawn[1]
    assert torch.is_grad_enabled()
    assert [module.training for module in model.modules()] == [True, True, False]
