"""Access to the model inside a parallel wrapper."""

from mmengine.model import is_model_wrapper
from torch import nn


def unwrap_model(model: nn.Module) -> nn.Module:
    """Takes a model out of its parallel wrapper, such as DDP, if it has one."""
    return model.module if is_model_wrapper(model) else model
