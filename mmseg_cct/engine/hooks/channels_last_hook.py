"""Weights and features as N×H×W×C in memory."""

import torch
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.registry import HOOKS
from mmengine.runner import Runner
from torch import nn

from mmseg_cct.engine.models import networks_of, unwrap_model


@HOOKS.register_module()
class ChannelsLastHook(Hook):
    """Keeps 4-dimensional weights, and therefore the features, as N×H×W×C in memory.

    The losses agree up to rounding. Noise and dropout are drawn in memory order, so the same
    seed gives different draws. The gain depends on network and device;
    `benchmarks/train_step.py --variants channels_last` measures it.

    Args:
        enabled: Whether to convert the model; None does so on a CPU if the model has depthwise
            convolutions, as MobileNetV2 does, whose steps then take a sixth to a third less time.
    """

    priority = 'LOW'  # after the teacher is made

    def __init__(self, enabled: bool | None = True) -> None:
        self.enabled = enabled

    def before_train(self, runner: Runner) -> None:
        """Converts all networks in place; the optimizer's parameters stay the same objects.

        The weights are initialised by now; in another layout they would be drawn differently.
        """
        model = unwrap_model(runner.model)
        enabled = self.enabled
        if enabled is None:
            on_cpu = next(model.parameters()).device.type == 'cpu'
            convolutions = (m for m in model.modules() if isinstance(m, nn.Conv2d))
            enabled = on_cpu and any(c.groups == c.in_channels > 1 for c in convolutions)
        if not enabled:
            return
        for network in networks_of(model):  # a teacher is no submodule
            network.to(memory_format=torch.channels_last)
        if is_model_wrapper(runner.model):
            # DDP laid out its gradient buffers by the old strides, and would mix them up
            runner.model = None  # frees the old wrapper, and with it its hooks on the parameters
            runner.model = runner.wrap_model(runner.cfg.get('model_wrapper_cfg'), model)
