"""Names the component that fails while a run is built, instead of a library's traceback.

The traceback shows which component was being built, and so what the config says of it. A mistake
that a library explains badly is looked for among the checks of `values`.
"""

import copy
import itertools
import re
import traceback
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.optim import build_optim_wrapper
from mmengine.registry import (
    DATASETS,
    HOOKS,
    LOOPS,
    METRICS,
    MODELS,
    PARAM_SCHEDULERS,
    TRANSFORMS,
    DefaultScope,
    Registry,
    build_from_cfg,
    build_scheduler_from_cfg,
)
from mmengine.visualization import Visualizer

from mmseg_cct.config.load import schedulers
from mmseg_cct.config.walk import at, forget_initial_weights, listed, settings_of
from mmseg_cct.datasets.failures import explain_failed_build
from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.utils.library_errors import library_errors_as_one_line, original_error
from mmseg_cct.utils.log import only_warnings
from mmseg_cct.utils.text import one_line

from .components import class_of, takes, unknown_type
from .files import annotation_problems
from .values import hooks_of, training_problems

_BUILDERS = {build_from_cfg.__code__, build_scheduler_from_cfg.__code__}


class Failed(NamedTuple):
    """A component of a config that could not be built."""

    key: str
    settings: Mapping[str, Any]
    registry: Registry


@contextmanager
def config_errors_as_one_line(config: Any, fails: str = 'cannot be built') -> Iterator[None]:
    """Names the component, or at least the config, instead of a library's traceback."""
    place = getattr(config, 'filename', None) or 'the config'
    scope = config.get('default_scope')
    with library_errors_as_one_line(place, fails, 'settings that fit together'):
        try:
            yield
        except torch.cuda.OutOfMemoryError:
            raise
        except UserError as error:
            with DefaultScope.overwrite_default_scope(scope):
                raise _under_its_key(config, error) from error.__cause__
        except Exception as error:
            with DefaultScope.overwrite_default_scope(scope):
                if config.get('model') and config.get('train_cfg'):
                    raise_problems(training_problems(config))
                component = failed_component(config, error)
                if component is None:
                    raise
                if component.registry.name == DATASETS.name:
                    raise_problems(annotation_problems(component.settings))
                    explain_failed_build(dict(component.settings), component.key)
                raise UserError(refusal(component, error)) from error


def _under_its_key(config: Any, error: UserError) -> UserError:
    """Puts a component's key for its class: a constructor does not know where it stands."""
    component = failed_component(config, error)
    if component is None:
        return error
    name = getattr(class_of(component.settings, component.registry), '__name__', '')
    return error.renamed(
        lambda key: re.sub(rf'^{re.escape(name)}\.', lambda _: f'{component.key}.', key)
    )


def first_image_guards(config: Any) -> Iterator[AbstractContextManager]:
    """Guards only the first image of a loop, with `config_errors_as_one_line`.

    A mistake in the config shows at the first image; later failures have other causes.
    """
    yield config_errors_as_one_line(config, 'fails at the first image')
    yield from itertools.repeat(nullcontext())


def failed_component(config: Mapping[str, Any], error: BaseException) -> Failed | None:
    """Finds the innermost component that was being built when an error was raised.

    In the traceback, the frames of mmengine's builders hold the settings. The result is `None` if
    no component was being built, or if it was a loop or a wrapper of data sets, which build far
    more than their arguments say. The config's `default_scope` must be set.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    building = [frame.f_locals for frame in frames if frame.f_code in _BUILDERS]
    components = [
        (key, part)
        for key, part in settings_of(config)
        if isinstance(part, Mapping) and 'type' in part
    ]
    for found in reversed(building):
        registry, settings = found['registry'], found['cfg']
        kind = settings.get('type') if isinstance(settings, Mapping) else None
        same = [(key, part) for key, part in components if part['type'] == kind]
        if kind is None or not same:  # a component builds parts that the config does not name
            continue
        # builders complete the settings that a config gives: the most arguments are equal
        key, part = max(
            same, key=lambda each: sum(str(settings.get(k)) == str(v) for k, v in each[1].items())
        )
        built = class_of(part, registry)
        is_set = isinstance(built, type) and issubclass(built, BaseDataset)
        is_wrapper = registry.name == DATASETS.name and built is not None and not is_set
        is_loop = registry.name == LOOPS.name and built is not None
        return None if is_loop or is_wrapper else Failed(key, part, registry)
    return None


def refusal(component: Failed, error: Exception) -> Problem:
    """Describes what a constructor raised as a mistake in the component's settings."""
    key, settings, registry = component
    built, said = class_of(settings, registry), original_error(error)
    if built is None:
        return unknown_type(key, settings, registry)
    line = one_line(said.args[0] if said.args else said)
    if isinstance(said, OSError):  # its first argument is a number
        line = f'{said.filename}: {said.strerror}'
    if isinstance(error, TypeError) and 'argument' in line:
        given = re.search(r"argument '(\w+)'", line)
        return Problem(key, line, takes(built, given[1] if given else ''))
    name = getattr(built, '__name__', built)
    if not line:  # for example of an assert, whose condition says more than its type
        line = f'{type(said).__name__} at {traceback.extract_tb(said.__traceback__)[-1].line}'
    return Problem(key, f'{name} refuses its arguments: {line}')


def require_buildable(config: Config) -> None:
    """Builds model, optimizer, hooks, pipelines and metrics of a training once, and drops them.

    For what trains many configs, or trains late: a training builds them by itself. The data sets
    may be on another machine.
    """
    config = copy.deepcopy(config)
    forget_initial_weights(config.model)
    scope = DefaultScope.overwrite_default_scope(config.get('default_scope'))
    with only_warnings(), config_errors_as_one_line(config), scope, torch.random.fork_rng():
        _build(config)


def _build(config: Config) -> None:
    optimizer = build_optim_wrapper(MODELS.build(config.model), config.optim_wrapper)
    for scheduler in schedulers(config):
        if not scheduler.get('convert_to_iter_based'):  # needs the length of an epoch
            PARAM_SCHEDULERS.build(scheduler, default_args=dict(optimizer=optimizer))
    Visualizer.get_instance('build')  # a hook asks for one; this one keeps nothing
    for _, hook in hooks_of(config):
        hook.pop('priority', None)  # the runner's
        HOOKS.build(hook)
    for split in ('train', 'val', 'test'):
        for key, part in settings_of(at(config, f'{split}_dataloader.dataset'), 'dataset'):
            for step in part if key.endswith('.pipeline') else ():
                TRANSFORMS.build(step)
        for metric in listed(config.get(f'{split}_evaluator') or None):
            METRICS.build(metric)
