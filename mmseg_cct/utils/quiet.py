"""Silences misleading lines of the dependencies."""

import io
import os
import warnings
from contextlib import redirect_stdout, suppress

# Warnings of mmcv and mmseg: installing the other mmcv would break the stack, every config without
# --show has an idle hook, and two classes have two channels here.
_WARNINGS = (
    'Fail to import ``MultiScaleDeformableAttention``',
    'The draw is False',
    'For binary segmentation, we suggest',
)


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
