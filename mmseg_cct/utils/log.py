"""Lines for the log, and lines of the dependencies that mislead and are silenced."""

import io
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress

from mmengine.logging import MMLogger, print_log

from mmseg_cct.errors import printable

# Warnings of mmcv and mmseg: installing the other mmcv would break the stack, every config without
# --show has an idle hook, and two classes have two channels here. And one of torch.compile: TF32 is
# for the user to choose.
_WARNINGS = (
    'Fail to import ``MultiScaleDeformableAttention``',
    'The draw is False',
    'For binary segmentation, we suggest',
    'TensorFloat32 tensor cores for float32',
)


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


def silence_misleading_lines() -> None:
    """Silences these lines; call it before importing the dependencies, which print some of them.

    Imports torch's forward-mode derivatives, whose deprecation warnings would mislead; other uses
    of `torch.jit.script` still warn.
    """
    # libtiff's lines about tags that OpenCV does not know, such as a georeference; workers inherit
    # the variable
    os.environ.setdefault('OPENCV_LOG_LEVEL', 'FATAL')
    for start in _WARNINGS:
        warnings.filterwarnings('ignore', message=start, category=UserWarning)
    # every loader warns at each start of its workers
    warnings.filterwarnings('once', message='This DataLoader will create', category=UserWarning)
    with warnings.catch_warnings(), suppress(ImportError):
        warnings.filterwarnings('ignore', message=r'`torch\.jit\.script`', category=Warning)
        import torch._decomp.decompositions_for_jvp  # noqa: F401
    # it prints a debug message about a commercial data set, which is not needed
    with redirect_stdout(io.StringIO()):
        import mmseg.datasets  # noqa: F401
