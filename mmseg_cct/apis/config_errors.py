"""What a config got wrong, told from the error that it made mmengine's builders raise."""

import difflib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from mmengine.dataset import BaseDataset
from mmengine.registry import OPTIMIZERS

from mmseg_cct.datasets.semi_supervised import explain_failed_build
from mmseg_cct.errors import UserError

_BUILDER = 'build_from_cfg'
# What components raise on a bad value, and builders on a bad type.
_MISTAKES = (KeyError, TypeError, ValueError, AssertionError, OSError)


@contextmanager
def config_mistakes_as_user_errors(config: Mapping[str, Any]) -> Iterator[None]:
    """Turns an error in building a component from its config into one line with the config's key.

    An unknown type, an argument that the type does not take, a value that its constructor refuses
    and a data set without its files are the config's mistakes. All other errors pass unchanged.

    Args:
        config: The whole config, to find the key in.

    Yields:
        Nothing; the body builds and runs. In place of such an error a `UserError` leaves it.
    """
    with _translated(config):
        yield


@contextmanager
def _translated(config: Mapping[str, Any]) -> Iterator[None]:
    try:
        yield
    except _MISTAKES as error:
        mistake = _mistake(error, config)
        if mistake is None:
            raise
        raise UserError(mistake) from error


def _mistake(error: Exception, config: Mapping[str, Any]) -> str | None:
    """The config's mistake behind an error, if it is one that is not explained already."""
    builder, in_constructor = _innermost_builder(error.__traceback__)
    if builder is None or isinstance(error, UserError):
        return None
    key = _key_of(builder.f_locals.get('cfg'), config)
    component = builder.f_locals.get('obj_cls')
    if inspect.isclass(component) and issubclass(component, BaseDataset):
        try:
            explain_failed_build(builder.f_locals['cfg'], key)
        except UserError as explained:
            return str(explained)
    return f'{key}{_explain(error, component, builder)}' if in_constructor else None


def require_optimizer(config: Mapping[str, Any]) -> None:
    """Checks the type of the optimizer, which mmengine inspects before it builds it.

    Args:
        config: The whole config.

    Raises:
        UserError: There is no such optimizer.
    """
    name = (config['optim_wrapper'].get('optimizer') or {}).get('type')
    if isinstance(name, str) and OPTIMIZERS.get(name) is None:
        raise UserError(f'optim_wrapper.optimizer{_unknown(name, OPTIMIZERS)}')


def _innermost_builder(traceback: TracebackType | None) -> tuple[FrameType | None, bool]:
    """The last frame that built a component, and whether only constructors run below it."""
    builder: FrameType | None = None
    names: list[str] = []
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code.co_name == _BUILDER:
            builder, names = frame, []
        elif builder is not None:
            names.append(frame.f_code.co_name)
        traceback = traceback.tb_next
    return builder, all(name == '__init__' or name.startswith('get') for name in names)


def _explain(error: Exception, component: Any, builder: FrameType) -> str:
    line = ' '.join(str(error.args[0] if error.args else error).split())
    if component is None and isinstance(error, KeyError):
        registry, name = builder.f_locals['registry'], builder.f_locals.get('obj_type')
        if not isinstance(name, str):
            return ': no type; expected type=..., the name of a component'
        return _unknown(name, registry)
    name = getattr(component, '__name__', '')
    if isinstance(error, TypeError) and 'argument' in line and name:
        taken = ', '.join(p for p in inspect.signature(component).parameters if p != 'self')
        return f': {line}; {name} takes {taken}'
    return f': {name} refuses its arguments: {line or type(error).__name__}'


def _unknown(name: str, registry: Any) -> str:
    near = difflib.get_close_matches(name, _names(registry), n=3)
    hint = f'did you mean {" or ".join(near)}?' if near else 'expected a registered component'
    return f".type: no '{name}' in {registry.scope}'s registry of {registry.name}s; {hint}"


def _names(registry: Any) -> list[str]:
    parent = getattr(registry, 'parent', None)
    return [*registry.module_dict, *(_names(parent) if parent is not None else [])]


def _key_of(part: Any, config: Any, key: str = '') -> str:
    """The dotted key of a part of a config, or the part's type where it is not found."""
    if not isinstance(part, Mapping):
        return 'config'
    for path, found in _parts(config, ''):
        # Builders add arguments to a part, as the parameters for an optimizer.
        if 'type' in found and all(part.get(name) == value for name, value in found.items()):
            return path
    return str(part.get('type', 'config'))


def _parts(config: Any, path: str) -> Iterator[tuple[str, Any]]:
    items: Any = ()
    if isinstance(config, Mapping) or hasattr(config, 'items'):
        items = config.items()
        if path:
            yield path, config
    elif isinstance(config, Sequence) and not isinstance(config, str):
        items = enumerate(config)
    for name, value in items:
        yield from _parts(value, f'{path}.{name}' if path else str(name))
