"""Compiles the encoders for training."""

from collections.abc import Callable
from types import MethodType
from typing import Any

import torch
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner
from torch import nn
from torch._dynamo.exc import TorchDynamoException

from mmseg_cct.engine.models import networks_of, unwrap_model
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.text import one_line


@HOOKS.register_module()
class CompileEncoderHook(Hook):
    """Compiles backbone and neck of each network for training, as `train.py --compile` does.

    The losses agree up to rounding. A GPU gets fewer and larger kernels, which counts where the
    host cannot start them fast enough. The first step of each batch shape takes minutes. Validation
    and checkpoints have the model as it is.

    Args:
        backend: That of `torch.compile`.
    """

    priority = 'VERY_LOW'  # after the teacher is made and laid out

    def __init__(self, backend: str | Callable = 'inductor') -> None:
        self.backend = backend

    def before_train(self, runner: Runner) -> None:
        """Compiles them; torch does so at their first call."""
        for network in networks_of(unwrap_model(runner.model)):
            is_learning = any(weight.requires_grad for weight in network.parameters())
            compile_encoder(network, self.backend, also_in_eval_mode=not is_learning)


def compile_encoder(
    model: nn.Module, backend: str | Callable = 'inductor', also_in_eval_mode: bool = False
) -> None:
    """Compiles backbone and neck of a segmentor in place; its evaluation stays as it is.

    What the compiler fails at goes on as it is, with a warning, and so does what checkpoints its
    activations: compiled, its backward pass would read running statistics that the forward pass of
    the other branch has updated. With `also_in_eval_mode`, what was compiled runs in eval mode,
    too, where images of a validation would each be a shape to compile for.
    """
    for part in filter(None, (model.backbone, getattr(model, 'neck', None))):
        # mmengine's `activation_checkpointing` sets `forward`
        if any(getattr(m, 'with_cp', False) or 'forward' in vars(m) for m in part.modules()):
            warn(f'{type(part).__name__} is not compiled: its activations are checkpointed')
            continue
        eager = type(part).forward
        compiled = torch.compile(eager, backend=backend)

        def forward(
            self: Any, *args: Any, eager: Any = eager, compiled: Any = compiled, **kwargs: Any
        ) -> Any:
            if not (model.training or also_in_eval_mode):
                return eager(self, *args, **kwargs)
            try:
                return compiled(self, *args, **kwargs)
            except TorchDynamoException as error:
                warn(f'{type(self).__name__} is not compiled: {one_line(error)}')
                del self.forward
                return eager(self, *args, **kwargs)

        part.forward = MethodType(forward, part)  # a copy of the part is bound to itself
