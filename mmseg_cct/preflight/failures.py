"""Names the component that fails while a run is built, instead of a library's traceback.

`stages` judges a config before anything is built. What only a constructor can judge, such as the
depth of a ResNet, fails later; the traceback shows which component was being built.
"""

import itertools
import traceback
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from mmengine.dataset import BaseDataset
from mmengine.registry import (
    DATASETS,
    LOOPS,
    DefaultScope,
    build_from_cfg,
    build_scheduler_from_cfg,
)

from mmseg_cct.datasets.failed_build import explain_failed_build
from mmseg_cct.errors import Problem, UserError
from mmseg_cct.utils.library_errors import library_errors_as_one_line, original_error
from mmseg_cct.utils.text import one_line

from .components import Component, class_of, find_components, takes

_BUILDERS = {build_from_cfg.__code__, build_scheduler_from_cfg.__code__}


@contextmanager
def config_errors_as_one_line(config: Any, fails: str = 'cannot be built') -> Iterator[None]:
    """Names the component, or at least the config, instead of a library's traceback."""
    place = getattr(config, 'filename', None) or 'the config'
    with library_errors_as_one_line(place, fails, 'settings that fit together'):
        try:
            yield
        except (UserError, torch.cuda.OutOfMemoryError):
            raise
        except Exception as error:
            with DefaultScope.overwrite_default_scope(config.get('default_scope')):
                component = failed_component(config, error)
                if component is None:
                    raise
                if component.registry is DATASETS:
                    explain_failed_build(dict(component.settings), component.key)
                raise UserError(refusal(component, error)) from error


def first_image_guards(config: Any) -> Iterator[AbstractContextManager]:
    """Guards only the first image of a loop, with `config_errors_as_one_line`.

    A mistake in the config shows at the first image; later failures have other causes.
    """
    yield config_errors_as_one_line(config, 'fails at the first image')
    yield from itertools.repeat(nullcontext())


def failed_component(config: Mapping[str, Any], error: Exception) -> Component | None:
    """Finds the innermost component that was being built when an error was raised.

    In the traceback, the frames of mmengine's builders hold the settings. The result is `None` if
    no component was being built, or if it was a loop or a wrapper of data sets, which build far
    more than their arguments say. The config's `default_scope` must be set.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    building = [frame.f_locals for frame in frames if frame.f_code in _BUILDERS]
    components = list(find_components(config))
    for found in reversed(building):
        registry, settings = found['registry'].name, found['cfg']
        same = [
            component
            for component in components
            if component.registry.name == registry
            and isinstance(component.settings, Mapping)
            and component.settings.get('type') == settings.get('type')
        ]
        if not same:  # a component builds parts that the config does not name
            continue
        component = max(same, key=lambda c: _common(c.settings, settings))
        kind = class_of(component)
        is_set = isinstance(kind, type) and issubclass(kind, BaseDataset)
        is_wrapper = component.registry is DATASETS and not is_set
        return None if component.registry is LOOPS or is_wrapper else component
    return None


def _common(settings: Mapping[str, Any], built: Mapping[str, Any]) -> int:
    """Counts equal arguments, because builders complete the settings that a config gives."""
    return sum(str(built.get(name)) == str(value) for name, value in settings.items())


def refusal(component: Component, error: Exception) -> str:
    """Describes what a constructor raised as a mistake in the component's settings."""
    built, said = class_of(component), original_error(error)
    line = one_line(said.args[0] if said.args else said)
    if isinstance(said, OSError):  # its first argument is a number
        line = f'{said.filename}: {said.strerror}'
    if isinstance(error, TypeError) and 'argument' in line:
        return str(Problem(component.key, line, takes(built)))
    name = getattr(built, '__name__', built)
    if not line:  # for example of an assert, whose condition says more than its type
        line = f'{type(said).__name__} at {traceback.extract_tb(said.__traceback__)[-1].line}'
    return f'{component.key}: {name} refuses its arguments: {line}'
