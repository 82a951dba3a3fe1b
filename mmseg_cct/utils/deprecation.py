"""Old names of arguments and components, which keep working for one release."""

import functools
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from mmengine.logging import print_log
from mmengine.registry import Registry

Init = TypeVar('Init', bound=Callable)


def renamed_arguments(**new_names: str) -> Callable[[Init], Init]:
    """Lets a constructor take arguments by their old names.

    Args:
        **new_names: The new name of each argument by its old one.

    Returns:
        A decorator for `__init__`. A call with an old name logs one line.
    """

    def decorate(init: Init) -> Init:
        @functools.wraps(init)
        def with_old_names(self: Any, *args: Any, **kwargs: Any) -> None:
            for old, new in new_names.items():
                if old in kwargs:
                    if new in kwargs:
                        raise TypeError(f'{old} is the old name of {new}; expected {new} alone')
                    _warn(f'{type(self).__name__}.{old}', f'{type(self).__name__}.{new}')
                    kwargs[new] = kwargs.pop(old)
            init(self, *args, **kwargs)

        with_old_names.renamed = new_names  # type: ignore[attr-defined]
        return with_old_names  # type: ignore[return-value]

    return decorate


def old_argument_names(component: Any) -> dict[str, str]:
    """Gives the arguments that a class also takes by an old name.

    Args:
        component: A class whose `__init__` may be decorated, or anything else.

    Returns:
        The new name of each argument by its old one.
    """
    return getattr(getattr(component, '__init__', None), 'renamed', {})


def register_old_name(registry: Registry, old: str, component: type) -> None:
    """Registers a component under the name that it had before.

    Args:
        registry: The registry of the component.
        old: Its old name.
        component: The component. Building it by the old name logs one line.
    """

    @functools.wraps(component, updated=())
    def build(**kwargs: Any) -> Any:
        _warn(old, component.__name__)
        # Not component(): the registry keeps the one instance of a visualizer.
        return registry.build(dict(kwargs, type=component))

    registry.register_module(name=old, module=build)


def _warn(old: str, new: str) -> None:
    message = f'{old} is called {new} now; the old name goes with the next release'
    print_log(message, logger='current', level=logging.WARNING)
