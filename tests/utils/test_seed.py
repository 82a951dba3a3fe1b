import random

import numpy as np
import pytest
import torch

from mmseg_cct.utils.seed import seeded_random_state


def test_all_three_generators_are_seeded_and_restored_after_an_error():
    draws = []

    def state():
        name, keys, *rest = np.random.get_state()
        return random.getstate(), (name, keys.tolist(), *rest), torch.get_rng_state().tolist()

    before = state()
    for _ in range(2):
        with pytest.raises(KeyError), seeded_random_state(2**32 - 1):
            draws.append((np.random.rand(), random.random(), torch.rand(1).item()))
            raise KeyError
    assert draws[0] == draws[1] and state() == before
