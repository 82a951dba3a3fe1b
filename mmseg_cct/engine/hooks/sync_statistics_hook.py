"""BatchNorm's running statistics, averaged over ranks."""

from typing import Any

from mmengine.dist import all_reduce_params, is_distributed
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


@HOOKS.register_module()
class SyncStatisticsHook(Hook):
    """Averages BatchNorm's running statistics over the ranks after every iteration.

    SyncBN needs GPUs. Without it, every rank collects the statistics of its own images and would
    validate with these. A checkpoint would hold those of rank 0, so a resumed training would differ
    from an uninterrupted one. mmengine's `SyncBuffersHook` averages only before a validation.
    """

    priority = 'HIGH'  # before a teacher averages them over time

    def before_train(self, runner: Runner) -> None:
        """Finds the layers; SyncBN's statistics are already equal."""
        modules = runner.model.modules() if is_distributed() else ()
        norms = (module for module in modules if isinstance(module, _BatchNorm))
        self._layers = [norm for norm in norms if not isinstance(norm, nn.SyncBatchNorm)]

    def after_train_iter(self, runner: Runner, *_: Any, **__: Any) -> None:
        pairs = ((layer.running_mean, layer.running_var) for layer in self._layers)
        all_reduce_params([part for pair in pairs for part in pair if part is not None], op='mean')
