"""Modes of modules for one pass: evaluation, BatchNorm without updates, and recorded inputs."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def eval_mode(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Sets modules to evaluation mode, each on its own, and restores their modes.

    Their children are left alone, so pass `model.modules()` for a whole model. `Module.train()`
    would not do: it would also thaw layers that were frozen after its last call.
    """
    training = [module for module in modules if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def all_but_batch_norm(model: nn.Module) -> list[nn.Module]:
    """Selects all modules but BatchNorm.

    In evaluation mode they run without dropout and stochastic depth.
    """
    return [module for module in model.modules() if not isinstance(module, _BatchNorm)]


@contextmanager
def frozen_running_statistics(model: nn.Module) -> Iterator[None]:
    """Keeps BatchNorm in train mode from updating its running statistics.

    It still normalises by the batch; BatchNorm in eval mode still uses its running statistics.
    """
    # without tracking, BatchNorm in train mode ignores its buffers and normalises by the batch
    tracking = [m for m in model.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
    for module in tracking:
        module.track_running_stats = False
    try:
        yield
    finally:
        for module in tracking:
            module.track_running_stats = True


@contextmanager
def recorded_input(layer: nn.Module) -> Iterator[list[Tensor]]:
    """Records the first input tensor of a layer at each call, in order."""
    inputs: list[Tensor] = []
    handle = layer.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    try:
        yield inputs
    finally:
        handle.remove()
