"""The stages of the checks, and the one loop that runs them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mmengine.registry import DefaultScope

from mmseg_cct.config.walk import at
from mmseg_cct.errors import Problem, UserError, raise_problems

from .components import component_problems
from .image_labels import annotation_problems
from .values import training_problems, value_problems

Problems = Iterable[Problem | UserError]


def run_stages(*stages: Callable[[], Problems]) -> None:
    """Runs the stages in order, up to the first that has problems."""
    for stage in stages:
        raise_problems(stage())


def check_config(config: Mapping[str, Any]) -> None:
    """Checks values, types and arguments of a config with a model, before anything is built."""
    raise_problems(_missing(config, 'model'))
    check_components(config)


def check_training(config: Mapping[str, Any]) -> None:
    """Checks the config of a training, before anything is built."""
    raise_problems(_missing(config, 'model'))
    with DefaultScope.overwrite_default_scope(config.get('default_scope')):
        run_stages(
            lambda: [*value_problems(config), *training_problems(config)],
            lambda: component_problems(config),
            lambda: _annotation_problems(config),
        )


def check_components(config: Mapping[str, Any], section: str | None = None) -> None:
    """Like `check_config`, but the model is optional.

    Args:
        config: The config. A `UserError` says that a value is out of range, that a type is not
            registered, or that an argument is unknown or missing.
        section: The only section whose components are checked: a tool that builds only a model
            takes a config without data.
    """
    raise_problems(_missing(config, section) if section else ())
    with DefaultScope.overwrite_default_scope(config.get('default_scope')):
        run_stages(
            lambda: value_problems(config, section),
            lambda: component_problems(config, section),
        )


def _annotation_problems(config: Mapping[str, Any]) -> Iterator[Problem]:
    for split in ('train', 'val', 'test'):
        yield from annotation_problems(at(config, f'{split}_dataloader.dataset') or {})


def _missing(config: Mapping[str, Any], section: str) -> Iterator[Problem]:
    if config.get(section) is None:
        yield Problem(section, 'missing', f'the config of a {section}')
