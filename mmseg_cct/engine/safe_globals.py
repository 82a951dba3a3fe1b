"""Lets `torch.load(weights_only=True)` read the checkpoints that mmengine writes.

A checkpoint of mmengine holds numpy scalars in its message hub. mmengine allows some of numpy's
dtypes, not float32, and falls back to the unsafe loader with a warning for the rest. And it allows
scalars by the name that the installed numpy has for them: numpy 1 and 2 differ in it.

mmengine's loader allows what else a checkpoint holds while it loads: the log's `HistoryBuffer`, and
with it `getattr`, which is too much to allow for a whole process. So a plain
`torch.load(file, weights_only=True)` refuses such a file; within
`torch.serialization.safe_globals(mmengine.runner.checkpoint.get_torch_safe_globals())` it loads.
"""

import numpy as np
import torch
from mmengine.utils import digit_version


def allow_numpy_dtypes() -> None:
    """Adds numpy's plain number types, and its scalars' old name, to what is accepted."""
    # torch before 2.4 has no such list and loads with weights_only=False.
    add_safe_globals = getattr(torch.serialization, 'add_safe_globals', None)
    if add_safe_globals is None:
        return
    codes = np.typecodes['AllInteger'] + np.typecodes['Float'] + '?'
    add_safe_globals([type(np.dtype(code)) for code in codes])
    # pairs of an object and its name are taken since torch 2.6, which is when it matters: before
    # that `weights_only` is off by default
    if digit_version(torch.__version__) >= digit_version('2.6'):
        scalar = np.float64(0).__reduce__()[0]
        add_safe_globals([(scalar, 'numpy.core.multiarray.scalar')])
