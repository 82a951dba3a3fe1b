"""The schedules of the learning rate in a config, and where they end."""

from typing import Any

from mmengine.config import Config

from .walk import at

# Names for the last iteration in mmengine's schedulers, their arguments and their states.
SCHEDULER_ENDS = ('end', 'total_iters', 'T_max', 'total_steps')


def schedulers(config: Config) -> list[Any]:
    """Lists the settings of a config's schedulers, which may be one or a list."""
    found = config.get('param_scheduler') or []
    return found if isinstance(found, list) else [found]


def move_scheduler_ends(config: Config, old_max_iters: int | None) -> None:
    """Moves the end of every scheduler that ended with the training to its new end."""
    new_max_iters = at(config, 'train_cfg.max_iters')
    for scheduler in schedulers(config):
        if scheduler.get('by_epoch', True) or old_max_iters is None:
            continue
        for key in SCHEDULER_ENDS:
            if scheduler.get(key) == old_max_iters:
                scheduler[key] = new_max_iters
