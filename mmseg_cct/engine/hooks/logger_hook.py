"""mmengine's logger, with the last iteration, the time that is left and one process."""

import math
from typing import Any

import numpy as np
from mmengine.dist import master_only
from mmengine.hooks import LoggerHook
from mmengine.registry import HOOKS
from mmengine.runner import Runner

from mmseg_cct.utils.log import say

_TIMED = 20  # iterations that tell how long a training takes


@HOOKS.register_module()
class MainProcessLoggerHook(LoggerHook):
    """`LoggerHook` that logs the last iteration too, and writes test metrics on one process.

    After 20 iterations it says how long the others will take.

    mmengine writes the metrics of a test into the same JSON file on every rank; where two writes
    overlap, the file cannot be parsed.
    """

    interval: int
    start = 0

    def before_train(self, runner: Runner) -> None:
        """Notes where the training starts."""
        self.start = runner.iter

    def after_train_iter(self, runner: Runner, batch_idx: int, *args: Any, **kwargs: Any) -> None:
        """Logs an iteration at the interval, and the last one even if the interval ends later."""
        interval = self.interval
        if self.is_last_train_iter(runner):
            self.interval = 1
        super().after_train_iter(runner, batch_idx, *args, **kwargs)
        self.interval = interval
        if runner.iter + 1 == self.start + _TIMED:
            say_time_left(runner)

    @master_only
    def after_test_epoch(self, *args: Any, **kwargs: Any) -> None:
        super().after_test_epoch(*args, **kwargs)


def say_time_left(runner: Runner) -> None:
    """Says how long a training takes, by the median of its first iterations: some compile."""
    times = runner.message_hub.log_scalars.get('train/time')
    left = runner.max_iters - runner.iter - 1
    if times is None or not left:
        return
    seconds = float(np.median(times.data[0][-_TIMED:]))
    hours, minutes = divmod(math.ceil(left * seconds / 60), 60)
    length = f'{hours} h {minutes} min' if hours else f'{minutes} min'
    say(f'About {length} for {left} more iterations of {seconds:.2f} s, and the validations')
