"""Lines for the log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from mmengine.logging import MMLogger, print_log

from mmseg_cct.errors import printable


def say(message: str) -> None:
    """Logs a line."""
    print_log(message, logger='current')


def warn(message: str) -> None:
    """Logs a warning."""
    print_log(printable(message), logger='current', level=logging.WARNING)


@contextmanager
def only_warnings() -> Iterator[None]:
    """Logs no line below a warning: for parts that are built to try them, not to train."""
    before, logger = logging.root.manager.disable, MMLogger.get_current_instance()
    logging.disable(logging.INFO)
    logger._cache.clear()  # Python does not know mmengine's loggers, which keep what they decided
    try:
        yield
    finally:
        logging.disable(before)
        logger._cache.clear()
