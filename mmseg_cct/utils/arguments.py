"""Rejects misspelt arguments that `**kwargs` would swallow."""

import inspect
from collections.abc import Iterable

from mmseg_cct.errors import UserError

from .suggest import nearest


def require_arguments_of(parent: type, given: Iterable[str], name: str) -> None:
    """Rejects names that the parent's `**kwargs` would swallow; `name` is that of the child."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(parent).parameters.values()
    known = [parameter.name for parameter in parameters if parameter.kind not in kinds]
    for each in given:
        if each not in known:
            raise UserError(f'{name}.{each}', 'no such argument', nearest(each, known))
