"""Mixed precision on the CPU, which mmengine's `AmpOptimWrapper` refuses."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from mmengine.optim import OptimWrapper
from mmengine.registry import OPTIM_WRAPPERS
from torch import nn

from mmseg_cct.utils.log import warn


@OPTIM_WRAPPERS.register_module()
class CPUAmpOptimWrapper(OptimWrapper):
    """Computes the losses under `torch.autocast('cpu', bfloat16)`.

    bfloat16 has float32's range, so no loss scaling is needed. The arguments are `OptimWrapper`'s.
    Warns if oneDNN cannot compute in bfloat16 on this CPU (x86 before AVX-512).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not _computes_bfloat16():
            warn(
                'optim_wrapper.type: CPUAmpOptimWrapper (--amp) on a CPU without bfloat16, where a '
                'step takes some ten times as long; expected OptimWrapper (no --amp)'
            )

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        """Adds autocasting to what `OptimWrapper` does around the forward pass."""
        with super().optim_context(model), torch.autocast('cpu', dtype=torch.bfloat16):
            yield


def _computes_bfloat16() -> bool:
    """Returns False if oneDNN leaves convolutions in bfloat16 to PyTorch's plain loops."""
    if not torch.backends.mkldnn.is_available():  # as on a Mac, where nothing was measured
        return True
    return torch.ops.mkldnn._is_mkldnn_bf16_supported()
