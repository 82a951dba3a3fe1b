"""Exponential moving average of a model, all tensors at once."""

import torch
from mmengine.model import MomentumAnnealingEMA
from torch import nn
from torch.optim.swa_utils import get_ema_multi_avg_fn


class MultiTensorEMA(MomentumAnnealingEMA):
    """`MomentumAnnealingEMA` that updates all averages in a few calls instead of one per tensor.

    After every step the averages equal those of mmengine's class; buffers are always averaged too.
    The averaged model may change its device or memory layout at any time, whereas mmengine's class
    keeps the tensors that it was built with.

    Args:
        model: The model to average.
        momentum: Smallest share of the model in a new average.
        gamma: The share after t updates is at least gamma / (gamma + t).
    """

    def __init__(self, model: nn.Module, momentum: float = 0.0002, gamma: int = 100) -> None:
        # mmengine warns of more than 0.5, which a target from the step before needs.
        super().__init__(model, min(momentum, 0.5), gamma, update_buffers=True)
        self.momentum = momentum

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        """Updates the average with the model's weights and buffers."""
        steps = int(self.steps)
        averages, values = self.module.state_dict(), model.state_dict()
        if steps == 0:
            for name, average in averages.items():
                average.copy_(values[name])
        else:
            names = [name for name, average in averages.items() if average.is_floating_point()]
            momentum = max(self.momentum, self.gamma / (self.gamma + steps))
            get_ema_multi_avg_fn(1 - momentum)(
                [averages[name] for name in names],
                [values[name].to(averages[name].device) for name in names],
                steps,
            )
        self.steps += 1
