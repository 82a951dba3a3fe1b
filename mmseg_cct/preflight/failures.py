"""One line in place of a library's traceback where the parts of a config do not fit together."""

import copy
from contextlib import AbstractContextManager
from typing import Any

import torch
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import HOOKS, METRICS, MODELS, PARAM_SCHEDULERS, TRANSFORMS, DefaultScope
from mmengine.visualization import Visualizer

from mmseg_cct.config.load import schedulers
from mmseg_cct.config.walk import as_list, forget_initial_weights, get_by_key, settings_of
from mmseg_cct.utils.log import only_warnings
from mmseg_cct.utils.text import library_errors_as_one_line

from .combinations import hooks_of


def config_errors_as_one_line(
    config: Any, fails: str = 'cannot be built'
) -> AbstractContextManager[None]:
    """Names the config and what a library says, which names the component, in one line."""
    config_name = getattr(config, 'filename', None) or 'the config'
    return library_errors_as_one_line(config_name, fails, 'settings that fit together')


def require_buildable(config: Config) -> None:
    """Builds model, optimizer, hooks, pipelines and metrics of a training once, and drops them.

    For what trains many configs, or trains late: a training builds them by itself. The data sets
    may be on another machine.
    """
    config = copy.deepcopy(config)
    forget_initial_weights(config.model)
    scope = DefaultScope.overwrite_default_scope(config.get('default_scope'))
    with only_warnings(), config_errors_as_one_line(config), scope, torch.random.fork_rng():
        optimizer = build_optim_wrapper(MODELS.build(config.model), config.optim_wrapper)
        for scheduler in schedulers(config):
            if not scheduler.get('convert_to_iter_based'):  # needs the length of an epoch
                PARAM_SCHEDULERS.build(scheduler, default_args=dict(optimizer=optimizer))
        Visualizer.get_instance('build')  # a hook asks for one; this one keeps nothing
        for _, hook in hooks_of(config):
            hook.pop('priority', None)  # the runner's
            HOOKS.build(hook)
        for split in ('train', 'val', 'test'):
            dataset = get_by_key(config, f'{split}_dataloader.dataset')
            for key, part in settings_of(dataset, 'dataset'):
                for step in part if key.endswith('.pipeline') else ():
                    TRANSFORMS.build(step)
            for metric in as_list(config.get(f'{split}_evaluator') or None):
                METRICS.build(metric)
