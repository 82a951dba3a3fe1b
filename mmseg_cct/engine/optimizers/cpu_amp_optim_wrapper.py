"""Mixed precision on the CPU, which mmengine's `AmpOptimWrapper` refuses."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from mmengine.optim import OptimWrapper
from mmengine.registry import OPTIM_WRAPPERS
from torch import nn


@OPTIM_WRAPPERS.register_module()
class CPUAmpOptimWrapper(OptimWrapper):
    """Computes the losses under `torch.autocast('cpu', bfloat16)`.

    bfloat16 has float32's range, so no loss scaling is needed. The arguments are `OptimWrapper`'s.
    """

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        """Adds autocasting to what `OptimWrapper` does around the forward pass."""
        with super().optim_context(model), torch.autocast('cpu', dtype=torch.bfloat16):
            yield
