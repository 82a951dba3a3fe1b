"""The memory layout that convolutions are fastest in."""

import torch
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner

from mmseg_cct.engine.model_wrappers import unwrap_model


@HOOKS.register_module()
class ChannelsLastHook(Hook):
    """Keeps 4-dimensional weights, and so the features, as N×H×W×C in memory.

    The losses agree but for rounding. Noise and dropout are drawn in order of memory, so a seed's
    draws are others. MobileNets on CPUs and convolutions in mixed precision on GPUs gain; ResNet-50
    on a CPU loses. Measure a few iterations of both.
    """

    def before_train(self, runner: Runner) -> None:
        """Converts the model in place; the optimizer's parameters stay the same objects.

        A teacher keeps the usual layout: mmengine averages into tensors that it found when the
        teacher was made, and new ones would never hear of it.
        """
        unwrap_model(runner.model).to(memory_format=torch.channels_last)
