"""The components that this package registers."""

import inspect

import mmengine.registry
import mmseg.registry
from mmengine.registry import Registry

import mmseg_cct.plugin  # noqa: F401 (registers the components)


def registered():
    """Classes of this package by the name under which a config knows them."""
    registries = {
        id(value): value
        for module in (mmengine.registry, mmseg.registry)
        for value in vars(module).values()
        if isinstance(value, Registry)
    }
    return {
        name: cls
        for registry in registries.values()
        for name, cls in registry.module_dict.items()
        if cls.__module__.startswith('mmseg_cct.') and inspect.isclass(cls)
    }
