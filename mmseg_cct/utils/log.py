"""Lines for the log."""

import logging

from mmengine.logging import print_log


def warn(message: str) -> None:
    """Logs a warning."""
    print_log(message, logger='current', level=logging.WARNING)
