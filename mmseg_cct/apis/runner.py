"""Builds a Runner from a config and runs it."""

import gc
from typing import Any

import torch.distributed
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from .config_errors import BUILD_ERRORS, raise_config_error


def run(config: Config, what: str) -> Any:
    """Builds a runner and calls its method `what`, such as `train`, whose result it returns."""
    # mmengine's own start of a process group selects a CUDA device; it keeps a group that is there.
    own_group = config.launcher != 'none' and get_device() == 'cpu'
    if own_group:
        torch.distributed.init_process_group('gloo')
    runner = None
    try:
        runner = RUNNERS.build(config) if 'runner_type' in config else Runner.from_cfg(config)
        result = getattr(runner, what)()
    except BUILD_ERRORS as error:
        # A runner builds most of its parts when it starts to run, and reports each iteration.
        if runner is None or not runner.message_hub.get_info('iter', 0):
            raise_config_error(config, error)
        raise
    if own_group:  # after an error the process ends, and its message needs the group's store
        # The distributed model holds the group. Were it left to the interpreter's end, a thread of
        # the group that lets go of a tensor then would abort the process (pytorch#190489).
        del runner
        gc.collect()
        torch.distributed.destroy_process_group()
    return result
