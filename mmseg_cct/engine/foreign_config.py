"""Checks the names in a config that came in a checkpoint: looking one up must import nothing."""

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from mmengine.registry import Registry, root

from mmseg_cct.config.walk import settings_of
from mmseg_cct.errors import UserError

_SCOPES = ('mmdet', 'mmengine', 'mmpretrain', 'mmseg')
# mmpretrain's wrappers of torchvision's transforms evaluate an argument as Python.
_EVALUATES = 'torchvision/'


def require_names_without_code(config: Mapping[str, Any], checkpoint: str) -> None:
    """Checks the components' names before a registry looks one up.

    mmengine imports the module of a dotted `type`, such as `subprocess.Popen`, and calls what it
    finds there with the config's arguments. It also imports the module that a scope names.

    Args:
        config: The config.
        checkpoint: The checkpoint that it came in, for the message.

    Raises:
        UserError: If a `type` has a dot (other than after a known scope) or is a module's name, or
            a scope is unknown.
    """
    for key, value in settings_of(config):
        name = key.rpartition('.')[2]
        if name in ('default_scope', '_scope_'):
            safe = value is None or value in _SCOPES
        else:
            safe = name != 'type' or value is None or _is_component(value)
        if not safe:
            raise UserError(
                checkpoint,
                f'its config has {key}={value!r}, which may run code',
                'a registered name (--config CONFIG, where there is one, takes a config of yours)',
            )


def _is_component(kind: Any) -> bool:
    """Whether looking up a type finds a registered component or nothing."""
    if not isinstance(kind, str) or not kind or _EVALUATES in kind:
        return False
    scope, dot, name = kind.rpartition('.')
    if dot:
        return scope in _SCOPES and name in _registered_names(scope)
    # A name that no registry has may be a component of the user's; looking it up finds nothing.
    return kind not in sys.modules and find_spec(kind) is None


def _registered_names(scope: str) -> set[str]:
    """Imports a package and returns the names in its registries."""
    try:
        import_module(f'{scope}.registry')
    except ImportError:
        return set()
    registries = [part for part in vars(root).values() if isinstance(part, Registry)]
    names: set[str] = set()
    while registries:
        registry = registries.pop()
        registries += registry.children.values()
        if registry.scope == scope:
            registry.import_from_location()
            names.update(registry.module_dict)
    return names
