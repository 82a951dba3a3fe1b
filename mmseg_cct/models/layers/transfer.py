"""Copies to the device that do not block the host."""

import torch
from torch import Tensor


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """Copies values that were made on the host, as draws and settings are, to the device.

    From pageable memory a copy blocks until the GPU has finished all queued work, in every step.
    """
    if device.type != 'cuda':
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)
