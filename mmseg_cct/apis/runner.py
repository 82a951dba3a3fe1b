"""Builds a Runner from a config and runs it."""

import gc
from typing import Any

import torch.distributed
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from .config_errors import config_mistakes_as_user_errors


def run(config: Config, what: str) -> Any:
    # mmengine's own start of a process group selects a CUDA device; it keeps a group that is there.
    own_group = config.launcher != 'none' and get_device() == 'cpu'
    if own_group:
        torch.distributed.init_process_group('gloo')
    with config_mistakes_as_user_errors(config):
        runner = RUNNERS.build(config) if 'runner_type' in config else Runner.from_cfg(config)
        result = getattr(runner, what)()
    if own_group:  # after an error the process ends, and its message needs the group's store
        # The distributed model holds the group. Were it left to the interpreter's end, a thread of
        # the group that lets go of a tensor then would abort the process (pytorch#190489).
        del runner
        gc.collect()
        torch.distributed.destroy_process_group()
    return result
