"""Modes for one pass: evaluation, BatchNorm without updates, recorded inputs, TensorFloat-32."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def _switched_off(attribute: str, modules: Iterable[nn.Module]) -> Iterator[None]:
    on = [module for module in modules if getattr(module, attribute)]
    for module in on:
        setattr(module, attribute, False)
    try:
        yield
    finally:
        for module in on:
            setattr(module, attribute, True)


def eval_mode(modules: Iterable[nn.Module]) -> AbstractContextManager[None]:
    """Sets modules to evaluation mode, each on its own, and restores their modes.

    Their children are left alone, so pass `model.modules()` for a whole model. `Module.train()`
    would not do: it would also thaw layers that were frozen after its last call.
    """
    return _switched_off('training', modules)


def all_but_batch_norm(model: nn.Module) -> list[nn.Module]:
    """Selects all modules but BatchNorm, which are those with dropout and stochastic depth."""
    return [module for module in model.modules() if not isinstance(module, _BatchNorm)]


def frozen_running_statistics(model: nn.Module) -> AbstractContextManager[None]:
    """Keeps BatchNorm in train mode from updating its running statistics.

    It still normalises by the batch; BatchNorm in eval mode still uses its running statistics.
    """
    # without tracking, BatchNorm in train mode ignores its buffers and normalises by the batch
    norms = (module for module in model.modules() if isinstance(module, _BatchNorm))
    return _switched_off('track_running_stats', norms)


@contextmanager
def recorded_input(layer: nn.Module) -> Iterator[list[Tensor]]:
    """Records the first input tensor of a layer at each call, in order."""
    inputs: list[Tensor] = []
    handle = layer.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    try:
        yield inputs
    finally:
        handle.remove()


@contextmanager
def precision_of_convolutions(device: torch.device) -> Iterator[None]:
    """Lets matrix products of float32 use TensorFloat-32 on a GPU where convolutions may.

    The auxiliary decoders are 1×1 convolutions, written as matrix products. torch allows
    TensorFloat-32 to convolutions (`torch.backends.cudnn.allow_tf32`), but not to products.
    """
    cudnn, products = torch.backends.cudnn, torch.backends.cuda.matmul
    # torch 2.9 renames the settings; the old names raise once somebody has set a new one
    renamed = hasattr(products, 'fp32_precision') and hasattr(cudnn, 'conv')
    wanted = cudnn.conv.fp32_precision == 'tf32' if renamed else cudnn.allow_tf32
    before = products.fp32_precision if renamed else products.allow_tf32
    if device.type != 'cuda' or wanted == (before in (True, 'tf32')):
        yield
        return
    levels = 'highest', 'high'  # the older way, which sets the new names, too
    torch.set_float32_matmul_precision(levels[wanted])
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(levels[not wanted])
        if renamed:
            products.fp32_precision = before
