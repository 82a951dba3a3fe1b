"""Copies to and from the device that do not block the host."""

from collections.abc import Callable

import torch
from torch import Tensor


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """Copies values that were made on the host, such as images and random draws, to the device.

    A copy from pageable memory would block until the GPU has finished all queued work, every step.
    """
    if device.type != 'cuda' or values.is_cuda:
        return values.to(device)
    # pinned memory stays until the copy is done, so the tensor here may be freed at once
    return values.pin_memory().to(device, non_blocking=True)


def to_host(values: Tensor) -> Callable[[], Tensor]:
    """Starts to copy values from the device; the function that it returns waits for the copy.

    Work that is queued meanwhile does not prolong the wait.
    """
    if not values.is_cuda:
        return values.cpu
    copy = values.to('cpu', non_blocking=True)  # to pinned memory
    done = torch.cuda.Event()
    done.record()

    def wait() -> Tensor:
        done.synchronize()
        return copy

    return wait
