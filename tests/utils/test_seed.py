import random

import numpy as np
import pytest
import torch

from mmseg_cct.utils.seed import seeded_random_state


def _random_state():
    name, keys, *rest = np.random.get_state()
    return random.getstate(), (name, keys.tolist(), *rest), torch.get_rng_state().tolist()


def _use_random_state():
    return np.random.rand(), random.random(), torch.rand(1).item()


def test_state_is_restored_after_an_error():
    before = _random_state()
    with pytest.raises(KeyError), seeded_random_state(7):
        _use_random_state()
        raise KeyError
    assert _random_state() == before


def test_all_three_generators_are_seeded():
    draws = []
    for _ in range(2):
        with seeded_random_state(2**32 - 1):
            draws.append(_use_random_state())
    assert draws[0] == draws[1]
