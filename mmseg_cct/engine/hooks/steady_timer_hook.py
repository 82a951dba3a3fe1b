"""Iteration timer whose ETA leaves out the compilation."""

from typing import Any

from mmengine.hooks import IterTimerHook
from mmengine.registry import HOOKS
from mmengine.runner import Runner

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
