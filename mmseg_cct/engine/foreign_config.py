"""Reads a config that came in a checkpoint: neither its text nor its parts may run code."""

import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from mmengine.config import Config
from mmengine.registry import Registry, root

from mmseg_cct.config.limits import check_sections, check_values
from mmseg_cct.config.text import read_config_text
from mmseg_cct.config.walk import at, listed, settings_of
from mmseg_cct.errors import Problem, UserError, raise_problems

_OWN_SCOPES = ('mmengine', 'mmseg')
_SCOPES = (*_OWN_SCOPES, 'mmdet', 'mmpretrain')
# Of the other scopes, a segmentor has these parts. Their data sets read pickles, and others of
# their models fetch code.
_PARTS = re.compile(
    r'\w+\.models\.(backbones|(dense_|seg_)?heads|layers|losses|necks|task_modules)\b'
)
# These make objects of what a file names, or fetch data.
_LOADERS = re.compile(r'mmseg\.\S*\.(dsdl|onedl|loading_onedl|vpd)$')
# mmpretrain's wrappers of torchvision's transforms evaluate an argument as Python.
_EVALUATES = 'torchvision/'
# Where tools build parts, and the settings there that no tool follows or that load data alone.
_BUILT = re.compile(r'(model|tta_\w+|\w+_(dataloader|pipeline|evaluator))\.')
_WEIGHTS = ('checkpoint', 'pretrained')
# mmengine unpickles files, and runs tags of yaml, by the end of the name.
_RUNS = re.compile(r'(.*\.)?(pickle|pkl|ya?ml)', re.DOTALL)
_ADDRESS = re.compile(r'.*://|[a-zA-Z][\w+.-]+:[\w/]', re.DOTALL)  # timm has hf-hub:NAME
_LOCAL = (None, 'atomic_local', 'disk', 'local')


def saved_config(
    content: Mapping[str, Any], checkpoint: str, is_built: bool = True
) -> Config | None:
    """Reads the text of a checkpoint's config without running it; None if there is none.

    If parts of it `is_built` into components, it is also checked that they run no code. Callers
    ignore its `custom_imports`.
    """
    text = (content.get('meta') or {}).get('cfg')
    if not isinstance(text, str):
        return None
    config = read_config_text(text, checkpoint)
    if is_built:
        require_usable_config(config, checkpoint)
        require_no_code(config, checkpoint)
    return config


def require_usable_config(config: Mapping[str, Any], checkpoint: str) -> None:
    """Checks that a saved config has the shape that its readers rely on."""
    try:
        check_sections(config)
        check_values(config)
        raise_problems(_config_problems(config))
    except UserError as error:
        raise error.within(f'{checkpoint}: its config') from None


def _config_problems(config: Mapping[str, Any]) -> Iterator[Problem]:
    imports = at(config, 'custom_imports.imports', [])
    if not all(isinstance(name, str) for name in listed(imports)):
        yield Problem(f'custom_imports.imports={imports!r}', '', 'a list of names')
    if config.get('model') is not None and not isinstance(at(config, 'model.type'), str):
        yield Problem('model', 'no type', "a model's settings")


def require_no_code(config: Mapping[str, Any], checkpoint: str) -> None:
    """Checks names and arguments before a registry looks up or builds a component.

    mmengine imports the module of a dotted `type`, such as `subprocess.Popen`, and calls what it
    finds there with the config's arguments. It also imports the module that a scope names. Its
    file backends and its readers of pickle and yaml are chosen by arguments.

    Raises:
        UserError: A `type` is no component of a segmentor, a scope is unknown, or an argument
            names a pickle, a yaml file, an address or another backend than local files.
    """
    for key, value in settings_of(config):
        name = key.rpartition('.')[2]
        if name in ('default_scope', '_scope_'):
            safe = value is None or value in _OWN_SCOPES
        elif name == 'type':
            safe = value is None or _is_component(value)
        else:
            safe = not _BUILT.match(key) or _is_harmless(name, value)
        if not safe:
            raise UserError(
                checkpoint,
                f'its config has {key}={value!r}, which may run code',
                'a registered name and local files, no pickle (--config CONFIG, where there is '
                'one, takes a config of yours)',
            )


def _is_harmless(name: str, value: Any) -> bool:
    """Whether an argument makes no component load code or ask another machine."""
    if name in ('backend_args', 'file_client_args'):
        return not value or value in [dict(backend=name) for name in _LOCAL]
    if name == 'checkpoint_path':  # timm unpickles it
        return value in (None, '')
    if not isinstance(value, str) or name in _WEIGHTS:
        return True
    if name.isdigit() and not ('://' in value or '.' in value):  # of a list, such as class names
        return True
    return not (_RUNS.fullmatch(value) or _ADDRESS.match(value))


def _is_component(kind: Any) -> bool:
    """Whether looking up a type finds a component of a segmentor or nothing."""
    if not isinstance(kind, str) or not kind or _EVALUATES in kind:
        return False
    scope, dot, name = kind.rpartition('.')
    if not dot and (kind in sys.modules or find_spec(kind) is not None):
        return False
    if dot and scope not in _SCOPES:
        return False
    modules = [
        module for each in ([scope] if dot else _OWN_SCOPES) for module in _found(each, name)
    ]
    if any(map(_LOADERS.match, modules)):
        return False
    if scope not in ('', *_OWN_SCOPES):
        return bool(modules) and all(map(_PARTS.match, modules))
    # A name that no registry has may be a component of the user's; looking it up finds nothing.
    return bool(modules) or not dot


def _found(scope: str, name: str) -> list[str]:
    """Imports a package; returns the modules of what its registries have by this name."""
    try:
        import_module(f'{scope}.registry')
    except ImportError:
        return []
    registries = [part for part in vars(root).values() if isinstance(part, Registry)]
    found = []
    while registries:
        registry = registries.pop()
        registries += registry.children.values()
        if registry.scope == scope:
            registry.import_from_location()
            if name in registry.module_dict:
                found.append(registry.module_dict[name].__module__)
    return found
