"""Validates and tests with merged BatchNorms."""

from collections.abc import Callable
from functools import partial
from typing import Any

from mmengine.hooks import Hook
from mmengine.model import BaseTTAModel
from mmengine.registry import HOOKS
from mmengine.runner import Runner

from mmseg_cct.engine.models import unwrap_model
from mmseg_cct.engine.prediction import fused_model


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
        if self._restore is not None:
            self._restore()
        self._restore = None

    before_test_iter = before_val_iter
    after_test_epoch = after_val_epoch
