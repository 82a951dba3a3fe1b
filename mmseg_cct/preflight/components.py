"""What the `type` of a component names."""

import inspect
from collections.abc import Mapping
from typing import Any

from mmengine.registry import Registry


def class_of(settings: Any, registry: Registry) -> Any:
    """Finds the class or function that a component's type names, or None."""
    component_type = settings.get('type') if isinstance(settings, Mapping) else None
    if callable(component_type):
        return component_type
    if not isinstance(component_type, str) or not component_type.strip('.'):
        return None
    with registry.switch_scope_and_registry(settings.get('_scope_')) as scoped:
        try:
            return scoped.get(component_type)
        except Exception:  # a registry tries to import what looks like a path, even '../x'
            return None


def is_a(settings: Any, registry: Registry, *classes: type) -> bool:
    """Whether the settings of a component name one of some classes, or a subclass."""
    component_class = class_of(settings, registry)
    return inspect.isclass(component_class) and issubclass(component_class, classes)
