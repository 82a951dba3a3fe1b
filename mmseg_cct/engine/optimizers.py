"""Mixed precision in bfloat16, and one parameter group per learning rate and weight decay."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from mmengine.device import get_device
from mmengine.logging import MMLogger
from mmengine.optim import DefaultOptimWrapperConstructor, OptimWrapper, OptimWrapperDict
from mmengine.registry import OPTIM_WRAPPER_CONSTRUCTORS, OPTIM_WRAPPERS
from mmengine.runner import Runner
from mmengine.utils import digit_version
from torch import nn

from mmseg_cct.utils.log import say, warn

__all__ = ['BFloat16OptimWrapper', 'MergedOptimWrapperConstructor']

# torch's optimizers with a fused step, on CPUs since 2.4. Not SGD: if a loss scaler skips the first
# step, as with float16, torch's fused SGD goes on with uninitialised momentum.
FUSED = ('Adam', 'AdamW')
_CPU_HAS_FUSED = digit_version(torch.__version__) >= digit_version('2.4')


def optim_wrappers(runner: Runner) -> list[OptimWrapper]:
    """Lists the optimizer wrappers of a run, mostly a single one."""
    wrapper = runner.optim_wrapper
    return list(wrapper.values()) if isinstance(wrapper, OptimWrapperDict) else [wrapper]


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class MergedOptimWrapperConstructor(DefaultOptimWrapperConstructor):
    """Merges parameter groups with equal options; `paramwise_cfg` makes one group per parameter.

    The optimizer then steps all parameters of a group at once, and schedules set a handful of
    rates; torch's Adam and AdamW step in one fused pass unless the config sets `fused`, `foreach`
    or `differentiable`. The log lists the groups in one line instead of every option of every
    parameter. The updates are those of mmengine's constructor, whose arguments it takes. The
    shipped schedules name it.
    """

    def __init__(self, optim_wrapper_cfg: dict, paramwise_cfg: dict | None = None) -> None:
        optimizer = optim_wrapper_cfg.get('optimizer') or {}
        settled = {'fused', 'foreach', 'differentiable'} & optimizer.keys()
        if optimizer.get('type') in FUSED and not settled and _CPU_HAS_FUSED:
            optim_wrapper_cfg = {**optim_wrapper_cfg, 'optimizer': {**optimizer, 'fused': True}}
        super().__init__(optim_wrapper_cfg, paramwise_cfg)

    def add_params(
        self,
        params: list[dict],
        module: nn.Module,
        prefix: str = '',
        is_dcn_module: int | float | None = None,
    ) -> None:
        """Adds a module's parameters as mmengine does; merges the groups of the whole model."""
        # mmengine calls this for every module; the groups are complete at the outermost one.
        if prefix:
            super().add_params(params, module, prefix, is_dcn_module)
            return
        logger = MMLogger.get_current_instance()
        level = logger.level
        logger.setLevel(logging.ERROR)  # mmengine has a line for each option of each parameter
        try:
            super().add_params(params, module, prefix, is_dcn_module)
        finally:
            logger.setLevel(level)
        # Groups with the same options become one, in the order of their first parameter.
        merged: dict[str, dict[str, Any]] = {}
        for group in params:
            options = {key: value for key, value in group.items() if key != 'params'}
            key = repr(sorted(options.items()))
            merged.setdefault(key, dict(params=[], **options))['params'] += group['params']
        params[:] = merged.values()
        lines = []
        for group in params:
            numbers = {k: v for k, v in group.items() if isinstance(v, (int, float))}
            shown = [f'{k}={v:g}' for k, v in numbers.items() if not k.endswith('_mult')]
            lines.append(f'{len(group["params"])} with {", ".join(shown) or "the default options"}')
        say(f'Parameters by options of the optimizer: {"; ".join(lines)}')


@OPTIM_WRAPPERS.register_module()
class BFloat16OptimWrapper(OptimWrapper):
    """Computes the losses under autocast to bfloat16, on a CPU or a GPU.

    bfloat16 has float32's range, so no loss scaling is needed: the host waits for no scaler to look
    at the gradients. The arguments are `OptimWrapper`'s. Warns if oneDNN cannot compute in bfloat16
    on this CPU (x86 before AVX-512).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.device = get_device()
        # where there is no oneDNN, as on a Mac, nothing was measured
        has_onednn = self.device == 'cpu' and torch.backends.mkldnn.is_available()
        if has_onednn and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
            slow = 'on a CPU without bfloat16, where a step takes some ten times as long'
            warn(f'optim_wrapper.type: BFloat16OptimWrapper (--amp) {slow}; expected no --amp')

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        """Adds autocasting to what `OptimWrapper` does around the forward pass."""
        with super().optim_context(model), torch.autocast(self.device, dtype=torch.bfloat16):
            yield
