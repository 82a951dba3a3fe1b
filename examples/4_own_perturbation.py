"""Trains CCT with a perturbation of your own beside the paper's.

A perturbation maps z at S positions, `(N, D, S)`, to k versions, `(k, N, D, S)`, one for each of
its decoders; docs/recipes.md has one that only masks positions.

Usage: python examples/4_own_perturbation.py [ITERATIONS]
"""

import sys

import torch
from mmseg.registry import MODELS
from torch import Tensor

import mmseg_cct.plugin  # noqa: F401 (registers the components)
from mmseg_cct.apis.prepare import Request
from mmseg_cct.apis.train import prepare_training, train
from mmseg_cct.models import Perturbation


@MODELS.register_module()
class ChannelScaling(Perturbation):
    """z~ = s ⊙ z with a factor s for each channel, drawn from [1 - strength, 1 + strength].

    Args:
        num_decoders: k; each draws its own factors.
        strength: Largest change of a channel, in [0, 1].
    """

    def __init__(self, num_decoders: int = 2, strength: float = 0.5) -> None:
        super().__init__(num_decoders)
        self.strength = strength

    def perturb(self, decoders, context) -> Tensor:
        """See `Perturbation.perturb`."""
        z = context.chosen_features
        draws = torch.rand(self.num_decoders, *z.shape[:2], 1, device=z.device)
        return z * (1 + self.strength * (2 * draws - 1))


iterations = int(sys.argv[1]) if sys.argv[1:] else 300
options = {
    'model.auxiliary_head.perturbations.scaling': dict(type='ChannelScaling', num_decoders=2),
    'train_cfg.max_iters': iterations,
    'train_cfg.val_interval': iterations,
    'default_hooks.checkpoint.interval': iterations,
}
# the log has its share of L_u as aux.scaling.consistency
folder = 'work_dirs/examples/scaling'
train(prepare_training('configs/demo/cct_shapes.py', Request(work_dir=folder, options=options)))
