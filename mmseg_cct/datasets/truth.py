"""Reads masks without the pipeline of their data set."""

from typing import Any

import numpy as np
from mmseg.datasets.transforms import LoadAnnotations


def read_truth(info: dict[str, Any]) -> np.ndarray:
    """Loads a mask by its data info, `(H, W)` label ids with 255 where ignored."""
    return LoadAnnotations()(dict(info, seg_fields=[]))['gt_seg_map']
