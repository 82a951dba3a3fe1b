"""Hooks that make trainings and validations faster, up to rounding the same."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from mmengine.hooks import Hook
from mmengine.model import BaseTTAModel, is_model_wrapper
from mmengine.registry import HOOKS
from mmengine.runner import Runner
from torch import nn
from torch._dynamo.exc import TorchDynamoException

from mmseg_cct.engine.models import unwrap_model
from mmseg_cct.engine.prediction import fused_model
from mmseg_cct.errors import UserError
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.text import one_line


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
        """Converts model and teacher in place; the optimizer's parameters stay the same objects.

        The weights are initialised by now; in another layout they would be drawn differently.
        """
        model = unwrap_model(runner.model)
        enabled = self.enabled
        if enabled is None:
            on_cpu = next(model.parameters()).device.type == 'cpu'
            convolutions = (each for each in model.modules() if isinstance(each, nn.Conv2d))
            enabled = on_cpu and any(c.groups == c.in_channels > 1 for c in convolutions)
        if not enabled:
            return
        for each in filter(None, (model, getattr(model, 'teacher', None))):  # no submodule
            each.to(memory_format=torch.channels_last)
        if is_model_wrapper(runner.model):
            # DDP laid out its gradient buffers by the old strides, and would mix them up
            runner.model = None  # frees the old wrapper, and with it its hooks on the parameters
            runner.model = runner.wrap_model(runner.cfg.get('model_wrapper_cfg'), model)


@HOOKS.register_module()
class CompileEncoderHook(Hook):
    """Compiles backbone and neck of student and teacher for training, as `train.py --compile` does.

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
        model = unwrap_model(runner.model)
        compile_encoder(model, self.backend)
        if getattr(model, 'teacher', None) is not None:
            compile_encoder(model.teacher, self.backend, also_in_eval_mode=True)


def compile_encoder(
    model: nn.Module, backend: str | Callable = 'inductor', also_in_eval_mode: bool = False
) -> None:
    """Compiles backbone and neck of a segmentor in place; copies of it are not compiled.

    What the compiler fails at goes on as it is, with a warning, and so does what checkpoints its
    activations: compiled, its backward pass would read running statistics that the forward pass of
    the other branch has updated.

    Args:
        model: The segmentor.
        backend: As in `CompileEncoderHook`.
        also_in_eval_mode: Whether to call what was compiled in eval mode, too, where images of a
            validation would each be a shape to compile for.
    """
    for part in filter(None, (model.backbone, getattr(model, 'neck', None))):
        # mmengine's `activation_checkpointing` sets `forward`
        if any(getattr(m, 'with_cp', False) or 'forward' in vars(m) for m in part.modules()):
            warn(f'{type(part).__name__} is not compiled: its activations are checkpointed')
            continue
        part.compile(backend=backend)
        compiled = part._compiled_call_impl  # what torch calls, and leaves out of copies

        def call(
            *args: Any, part: nn.Module = part, compiled: Any = compiled, **kwargs: Any
        ) -> Any:
            if not (model.training or also_in_eval_mode):
                return part._call_impl(*args, **kwargs)
            try:
                return compiled(*args, **kwargs)
            except TorchDynamoException as error:
                warn(f'{type(part).__name__} is not compiled: {one_line(error)}')
                part._compiled_call_impl = None
                return part._call_impl(*args, **kwargs)

        part._compiled_call_impl = call


@HOOKS.register_module()
class FreezeHook(Hook):
    """Computes no gradients for parameters whose learning rate is 0.

    ``paramwise_cfg=dict(custom_keys={'backbone.layer1': dict(lr_mult=0.0)})`` freezes weights, but
    their gradients are computed all the same. Without them the same training takes less time and
    memory; the earlier the frozen layers, the more it saves. MMSeg's `frozen_stages` does more: it
    also normalises these layers by their running statistics.

    A distributed training still computes them, since DDP waits for every gradient; there they also
    count in the norm of `clip_grad`.
    """

    def before_train(self, runner: Runner) -> None:
        """Takes the parameters out of the graph; no schedule may raise their rate above 0."""
        frozen = [
            parameter
            for group in runner.optim_wrapper.param_groups
            # a warm-up may have set `lr` itself to another value
            if group.get('initial_lr', group['lr']) == 0
            for parameter in group['params']
        ]
        if not frozen:
            return
        for scheduler in runner.param_schedulers or ():
            if getattr(scheduler, 'eta_min', 0):
                raise UserError(
                    f'param_scheduler.eta_min={scheduler.eta_min}',
                    f'would lift the learning rate of {len(frozen)} weights that lr_mult=0 freezes',
                    '0',
                )
        if is_model_wrapper(runner.model):
            return
        for parameter in frozen:
            parameter.requires_grad_(False)
        # mmengine logs the rate of the first group, which may be a frozen one
        runner.logger.info(
            f'{len(frozen)} weights are frozen by a learning rate of 0; where "lr" in the log '
            'is 0 it is theirs, and "base_lr" is that of the training'
        )


@HOOKS.register_module()
class FuseConvBNHook(Hook):
    """Validates and tests with each BatchNorm merged into the convolution before it.

    The logits agree up to rounding: they are compared on the first batch, and a model whose logits
    differ is not merged. Training and checkpoints keep the original model.

    Args:
        enabled: Whether to merge; None does so on a CPU.
    """

    priority = 'VERY_HIGH'  # puts the model back before another hook saves it

    def __init__(self, enabled: bool | None = True) -> None:
        self.enabled = enabled
        self._restore: Callable[[], None] | None = None

    def before_val_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None) -> None:
        """Replaces the model at the first batch."""
        if batch_idx > 0:
            return
        segmentor = model = unwrap_model(runner.model)
        owner, name = runner, 'model'
        if isinstance(model, BaseTTAModel):
            segmentor, owner, name = model.module, model, 'module'
            data_batch = {key: views[0] for key, views in data_batch.items()}
        enabled = self.enabled
        if enabled is None:
            enabled = next(segmentor.parameters()).device.type == 'cpu'
        if enabled and not hasattr(segmentor, 'domains'):  # a batch would check only one of them
            self._restore = partial(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, fused_model(segmentor, data_batch))

    def after_val_epoch(self, runner: Runner, metrics: dict[str, float] | None = None) -> None:
        """Puts the model back."""
        if self._restore is not None:
            self._restore()
        self._restore = None

    before_test_iter = before_val_iter
    after_test_epoch = after_val_epoch
