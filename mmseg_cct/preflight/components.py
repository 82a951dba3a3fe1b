"""What the `type` of a component names."""

import inspect
from collections.abc import Mapping
from typing import Any

from mmengine.registry import Registry


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
