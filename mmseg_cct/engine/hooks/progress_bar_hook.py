"""A progress bar below the log."""

from contextlib import ExitStack
from typing import Any

from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm


@HOOKS.register_module()
class ProgressBarHook(Hook):
    """Shows iterations, speed, remaining time and loss below the lines of the log.

    The log file does not change. `mmseg-cct train` adds it if its output is a terminal.
    """

    priority = 'VERY_LOW'

    def __init__(self) -> None:
        self.bar: Any = None
        self.open = ExitStack()

    def before_train(self, runner: Runner) -> None:
        if not is_main_process():
            return
        self.open.enter_context(logging_redirect_tqdm([runner.logger]))
        self.bar = self.open.enter_context(
            tqdm(desc='train', total=runner.max_iters, initial=runner.iter, dynamic_ncols=True)
        )

    def after_train_iter(self, runner: Runner, *_: Any, **__: Any) -> None:
        if self.bar is None:
            return
        hub = runner.message_hub
        if 'train/loss' in hub.log_scalars:
            loss = hub.get_scalar('train/loss').current()
            self.bar.set_postfix(loss=f'{loss:.3f}', refresh=False)
        self.bar.update()

    def after_train(self, runner: Runner) -> None:
        self.open.close()
