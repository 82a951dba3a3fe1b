"""Hooks for what the log and the terminal say: progress, remaining time, metrics, accuracies."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from mmengine.dist import is_main_process, master_only
from mmengine.hooks import Hook, IterTimerHook, LoggerHook
from mmengine.registry import HOOKS
from mmengine.runner import Runner
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from mmseg_cct.utils.labels import IGNORE_INDEX
from mmseg_cct.utils.ranges import at_least, ranges


@HOOKS.register_module()
class SteadyTimerHook(IterTimerHook):
    """Estimates the remaining time without the first iterations, which compile and warm up.

    mmengine's timer averages over all iterations, so its first estimates count the minutes of
    compilation for every iteration that is left.

    Args:
        warm_up: Number of first iterations that the average leaves out; until then the estimate is
            based on the latest iteration only.
    """

    @ranges(warm_up=at_least(0))
    def __init__(self, warm_up: int = 3) -> None:
        super().__init__()
        self.warm_up = warm_up
        self.first_iter = 0

    def before_train(self, runner: Runner) -> None:
        """Starts counting, at the resumed iteration if there is one."""
        super().before_train(runner)
        self.first_iter = runner.iter

    def _after_iter(self, runner: Runner, *args: Any, mode: str = 'train', **kwargs: Any) -> None:
        if mode == 'train' and runner.iter - self.first_iter <= self.warm_up:
            self.time_sec_tot, self.start_iter = 0, runner.iter
        super()._after_iter(runner, *args, mode=mode, **kwargs)


@HOOKS.register_module()
class MainProcessLoggerHook(LoggerHook):
    """`LoggerHook` that logs the last iteration too, and writes test metrics on one process.

    mmengine writes the metrics of a test into the same JSON file on every rank; where two writes
    overlap, the file cannot be parsed.
    """

    interval: int

    def after_train_iter(self, runner: Runner, batch_idx: int, *args: Any, **kwargs: Any) -> None:
        """Logs an iteration at the interval, and the last one even if the interval ends later."""
        interval = self.interval
        if self.is_last_train_iter(runner):
            self.interval = 1
        super().after_train_iter(runner, batch_idx, *args, **kwargs)
        self.interval = interval

    @master_only
    def after_test_epoch(self, *args: Any, **kwargs: Any) -> None:
        """Logs and writes the metrics."""
        super().after_test_epoch(*args, **kwargs)


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


@HOOKS.register_module()
class ProgressBarHook(Hook):
    """Shows iterations, speed, remaining time and loss below the lines of the log.

    The log file does not change. `tools/train.py` adds it if its output is a terminal.
    """

    priority = 'VERY_LOW'

    def __init__(self) -> None:
        self.bar: Any = None
        self.open = ExitStack()

    def before_train(self, runner: Runner) -> None:
        """Shows the bar, and lets the log write above it."""
        if not is_main_process():
            return
        self.open.enter_context(logging_redirect_tqdm([runner.logger]))
        self.bar = self.open.enter_context(
            tqdm(desc='train', total=runner.max_iters, initial=runner.iter, dynamic_ncols=True)
        )

    def after_train_iter(self, runner: Runner, *_: Any, **__: Any) -> None:
        """Advances the bar."""
        if self.bar is None:
            return
        hub = runner.message_hub
        if 'train/loss' in hub.log_scalars:
            loss = hub.get_scalar('train/loss').current()
            self.bar.set_postfix(loss=f'{loss:.3f}', refresh=False)
        self.bar.update()

    def before_val(self, runner: Runner) -> None:
        """Shows that a validation is running."""
        if self.bar is not None:
            self.bar.set_description('validate')

    def after_val(self, runner: Runner) -> None:
        """Shows that the training goes on."""
        if self.bar is not None:
            self.bar.set_description('train')

    def after_train(self, runner: Runner) -> None:
        """Closes the bar."""
        self.open.close()
