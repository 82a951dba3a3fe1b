"""Copies from the host for which the host does not wait."""

import torch
from torch import Tensor


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """Copies values that were made on the host, as draws and settings are, to the device.

    From ordinary memory a copy waits until the GPU has done all that is queued, in every step.

    Args:
        values: On the CPU.
        device: Of the batch.

    Returns:
        The same values on the device.
    """
    if device.type != 'cuda':
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)
