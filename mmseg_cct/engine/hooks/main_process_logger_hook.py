"""mmengine's logger, with test metrics written once in a distributed run."""

from typing import Any

from mmengine.dist import master_only
from mmengine.hooks import LoggerHook
from mmengine.registry import HOOKS


@HOOKS.register_module()
class MainProcessLoggerHook(LoggerHook):
    """`LoggerHook` that writes the metrics of a test on the main process only.

    mmengine writes the same JSON file on every rank. If two writes overlap, the end of the longer
    one may remain after the shorter one, and the file cannot be parsed.
    """

    @master_only
    def after_test_epoch(self, *args: Any, **kwargs: Any) -> None:
        """Logs and writes the metrics."""
        super().after_test_epoch(*args, **kwargs)
