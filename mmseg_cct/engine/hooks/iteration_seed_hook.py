"""The same random draws in an iteration, whether a training was resumed or not."""

import random
from typing import Any

import numpy as np
import torch
from mmengine.dist import get_rank
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner


@HOOKS.register_module()
class IterationSeedHook(Hook):
    """Seeds the random generators of the process before every training iteration.

    A resumed run then draws the same perturbations and dropout masks as an uninterrupted one. The
    run's seed is `randomness.seed`, or the one that the runner has drawn; each rank is seeded
    differently. `SemiSegDataset` seeds the data augmentation.
    """

    priority = 'VERY_HIGH'

    def before_train_iter(self, runner: Runner, *_: Any, **__: Any) -> None:
        sequence = np.random.SeedSequence([runner.seed, runner.iter, get_rank()])
        seed = int(sequence.generate_state(1)[0])
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
