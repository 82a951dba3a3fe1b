"""Faster validations and tests on a CPU."""

from collections.abc import Callable
from functools import partial
from typing import Any

from mmengine.hooks import Hook
from mmengine.model import BaseTTAModel
from mmengine.registry import HOOKS
from mmengine.runner import Runner

from mmseg_cct.engine.fused_model import fused_model
from mmseg_cct.engine.model_wrappers import unwrap_model


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
        self._restore: Callable[[], None] = _nothing

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
        self._restore()
        self._restore = _nothing

    before_test_iter = before_val_iter
    after_test_epoch = after_val_epoch


def _nothing() -> None:
    pass
