"""Fields with a value for each pixel, stacked over the samples of a batch."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from mmseg.structures import SegDataSample
from torch import Tensor


def stack_field(
    data_samples: Sequence[SegDataSample], name: str, size: tuple[int, int]
) -> Tensor | None:
    """Stacks a field of the samples, such as `valid_mask`, at the size of a prediction.

    Returns `(N, 1, H, W)` of the field's type, resized to the nearest pixel, or None unless all
    samples have the field.
    """
    # all or none: where some samples lack the field there is no tensor of it
    if not data_samples or not all(name in sample for sample in data_samples):
        return None
    values = torch.stack([sample.get(name).data for sample in data_samples])
    if values.shape[-2:] == tuple(size):
        return values
    # in float, where class ids below 2²⁴ are exact
    return F.interpolate(values.float(), size, mode='nearest-exact').to(values.dtype)
