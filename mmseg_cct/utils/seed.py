"""Seeds for a block of code."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def seeded_random_state(seed: int) -> Iterator[None]:
    """Seeds Python, NumPy and torch (CPU) in the body, then restores them; seed in [0, 2³²)."""
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    random.seed(seed)
    np.random.seed(seed)
    # Not torch.manual_seed: that would reset the GPU's generators as well.
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])
