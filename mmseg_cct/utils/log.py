"""Lines for the log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from mmengine.logging import print_log

from mmseg_cct.errors import printable


def warn(message: str) -> None:
    """Logs a warning."""
    print_log(printable(message), logger='current', level=logging.WARNING)


@contextmanager
def only_warnings() -> Iterator[None]:
    """Logs no line below a warning: for parts that are built to try them, not to train."""
    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        logging.disable(before)
