"""Exponential moving average of a model, all tensors at once."""

from mmengine.model import MomentumAnnealingEMA
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn


class MultiTensorEMA(MomentumAnnealingEMA):
    """`MomentumAnnealingEMA` whose averages are updated by a few calls in place of one per tensor.

    The arguments and the averages are those of mmengine's class.
    """

    def update_parameters(self, model: nn.Module) -> None:
        """Takes the model's weights into the average.

        Args:
            model: The model that is averaged.
        """
        steps = int(self.steps)
        if steps == 0 or steps % self.interval or not self.update_buffers:
            super().update_parameters(model)
            return
        averages, sources = self._pairs(model)
        momentum = max(self.momentum, self.gamma / (self.gamma + steps))
        get_ema_multi_avg_fn(1 - momentum)(averages, sources, steps)
        self.steps += 1

    def _pairs(self, model: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
        """Floating-point tensors of the average, and those of the model."""
        own, other = (_tensors(module) for module in (self.module, model))
        names = [name for name in self.avg_parameters if own[name].is_floating_point()]
        return [own[name] for name in names], [other[name].to(own[name].device) for name in names]


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    named = dict(module.named_parameters(remove_duplicate=False))
    named.update(module.named_buffers(remove_duplicate=False))
    return {name: tensor.data for name, tensor in named.items()}
