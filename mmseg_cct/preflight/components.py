"""What the `type` of a component names."""

import inspect
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from mmengine.registry import Registry

from mmseg_cct.errors import Problem, UserError
from mmseg_cct.utils.library_errors import library_errors_as_one_line
from mmseg_cct.utils.text import nearest


def class_of(settings: Any, registry: Registry) -> Any:
    """Finds the class or function that a component's type names, or None."""
    kind = settings.get('type') if isinstance(settings, Mapping) else None
    if callable(kind):
        return kind
    if not isinstance(kind, str) or not kind.strip('.'):
        return None
    with registry.switch_scope_and_registry(settings.get('_scope_')) as scoped:
        try:
            return scoped.get(kind)
        except Exception:  # a registry tries to import what looks like a path, even '../x'
            return None


def is_a(settings: Any, registry: Registry, *kinds: type) -> bool:
    """Whether the settings of a component name one of some classes, or a subclass."""
    built = class_of(settings, registry)
    return inspect.isclass(built) and issubclass(built, kinds)


def unknown_type(key: str, settings: Mapping[str, Any], registry: Registry) -> Problem:
    """Describes a type that no registry has."""
    kind = settings['type']
    if not isinstance(kind, str) or not kind.strip('.'):
        return Problem(f'{key}.type={kind!r}', '', f'the name of a {registry.name}')
    package = kind.partition('.')[0]
    if package != kind and package.isidentifier() and find_spec(package):
        try:
            with library_errors_as_one_line(
                f'{key}.type', f'{package} cannot be imported', f'{package} and what it needs'
            ):
                registry.get(kind)
        except UserError as error:
            return error.problems[0]
    with registry.switch_scope_and_registry(settings.get('_scope_')) as scoped:
        found = f"no '{kind}' in {scoped.scope}'s registry of {scoped.name}s"
        names = _registered_names(scoped)
    return Problem(f'{key}.type', found, nearest(kind, names, 'a registered component', cutoff=0.6))


def _registered_names(registry: Registry) -> list[str]:
    outer = registry.parent
    return [*registry.module_dict, *(_registered_names(outer) if outer is not None else [])]


def takes(built: Any, given: str = '') -> str:
    """Names the arguments like a misspelt one, or all, for the `expected` of a problem."""
    try:
        names = list(inspect.signature(built).parameters)
    except (TypeError, ValueError):  # written in C
        names = []
    all_of_them = f'what {getattr(built, "__name__", built)} takes: {", ".join(names)}'
    return nearest(given, names, all_of_them, cutoff=0.6)
