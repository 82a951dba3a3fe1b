"""Lets `torch.load(weights_only=True)` read the checkpoints that mmengine writes.

A checkpoint of mmengine holds numpy scalars in its message hub. mmengine allows some of numpy's
dtypes, not float32, and falls back to the unsafe loader with a warning for the rest.

mmengine's loader allows what else a checkpoint holds while it loads: the log's `HistoryBuffer`, and
with it `getattr`, which is too much to allow for a whole process. So a plain
`torch.load(file, weights_only=True)` refuses such a file; within
`torch.serialization.safe_globals(mmengine.runner.checkpoint.get_torch_safe_globals())` it loads.
"""

import numpy as np
import torch


def allow_numpy_dtypes() -> None:
    """Adds numpy's plain number types to what `weights_only=True` accepts."""
    # torch before 2.4 has no such list and loads with weights_only=False.
    add_safe_globals = getattr(torch.serialization, 'add_safe_globals', None)
    if add_safe_globals is not None:
        codes = np.typecodes['AllInteger'] + np.typecodes['Float'] + '?'
        add_safe_globals([type(np.dtype(code)) for code in codes])
