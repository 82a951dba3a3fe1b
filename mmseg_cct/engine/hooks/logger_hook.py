"""mmengine's logger, with the last iteration and one process."""

from typing import Any

from mmengine.dist import master_only
from mmengine.hooks import LoggerHook
from mmengine.registry import HOOKS
from mmengine.runner import Runner


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
