"""A model of a run: taken out of its parallel wrapper, and run without disturbing a training."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from mmengine.model import is_model_wrapper
from torch import nn

from mmseg_cct.models.layers.modes import eval_mode
from mmseg_cct.utils.seed import seeded_random_state


def unwrap_model(model: nn.Module) -> nn.Module:
    """Takes a model out of its parallel wrapper, such as DDP, if it has one."""
    return model.module if is_model_wrapper(model) else model


def networks_of(model: nn.Module) -> list[nn.Module]:
    """Lists the networks of a segmentor that have an encoder of their own, such as its teacher."""
    networks: list[nn.Module] = getattr(model, 'networks', [model])
    return networks


@contextmanager
def eval_sandbox(model: nn.Module, seed: int) -> Iterator[None]:
    """Runs the body seeded, in evaluation mode, without gradients; restores modes and generators.

    The whole model must be on one device.
    """
    device = next(model.parameters()).device
    on_accelerator = device.type != 'cpu'  # `seeded_random_state` leaves its generator alone
    forked = torch.random.fork_rng([device] if on_accelerator else [], device_type=device.type)
    with seeded_random_state(seed), forked, torch.no_grad(), eval_mode(model.modules()):
        if on_accelerator:
            getattr(torch, device.type).manual_seed(seed)
        yield
