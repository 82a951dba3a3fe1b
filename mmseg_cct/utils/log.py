"""Lines for the log."""

import logging

from mmengine.logging import print_log

from mmseg_cct.errors import printable


def warn(message: str) -> None:
    """Logs a warning."""
    print_log(printable(message), logger='current', level=logging.WARNING)
