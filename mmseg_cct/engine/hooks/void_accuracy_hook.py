"""Leaves the accuracy of a batch without a labelled pixel out of the log."""

from collections.abc import Mapping
from typing import Any

from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner

from mmseg_cct.utils.labels import IGNORE_INDEX


@HOOKS.register_module()
class VoidAccuracyHook(Hook):
    """Drops `acc_seg` where a batch has no labelled pixel, which MMSeg logs as 100."""

    # Before mmengine's RuntimeInfoHook takes what is logged.
    priority = 'HIGHEST'

    def after_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: dict | None = None
    ) -> None:
        """Drops the accuracies of a void batch from `outputs`."""
        accuracies = [name for name in outputs or {} if name.endswith('acc_seg')]
        if outputs is None or not accuracies or not _is_void(data_batch):
            return
        for name in accuracies:
            del outputs[name]


def _is_void(data_batch: Any) -> bool:
    samples = data_batch.get('data_samples') if isinstance(data_batch, Mapping) else None
    labeled = samples.get('labeled', ()) if isinstance(samples, Mapping) else samples or ()
    masks = [sample.gt_sem_seg.data for sample in labeled if 'gt_sem_seg' in sample]
    return bool(masks) and all(bool((mask == IGNORE_INDEX).all()) for mask in masks)
