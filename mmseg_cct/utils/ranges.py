"""Ranges of arguments whose other values would train otherwise than meant, without a word.

    @ranges(num_decoders=at_least(2), drop_ratio=in_unit)
    def __init__(self, drop_ratio: float = 0.5, num_decoders: int = 8) -> None: ...

The constructor rejects other values.
"""

import functools
import inspect
import math
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple, TypeVar

from mmseg_cct.errors import Problem, UserError, raise_problems

F = TypeVar('F', bound=Callable[..., Any])


class Range(NamedTuple):
    """The values that an argument `allows`, and what is `expected` in words."""

    allows: Callable[[Any], bool]
    expected: str


def ranges(**by_name: Range) -> Callable[[F], F]:
    """Makes a decorator for constructors that rejects arguments out of range."""

    def decorate(init: F) -> F:
        signature = inspect.signature(init)

        @functools.wraps(init)
        def checked(self: Any, *args: Any, **kwargs: Any) -> None:
            values = signature.bind(self, *args, **kwargs).arguments
            raise_problems(
                Problem(f'{type(self).__name__}.{name}={values[name]!r}', '', limit.expected)
                for name, limit in by_name.items()
                if name in values and not limit.allows(values[name])
            )
            init(self, *args, **kwargs)

        return checked  # type: ignore[return-value]

    return decorate


def require_arguments_of(parent: type, names: Iterable[str], child: str) -> None:
    """Rejects names that the parent's `**kwargs` would swallow; `child` is the child's name."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(parent).parameters.values()
    known = [parameter.name for parameter in parameters if parameter.kind not in kinds]
    for name in names:
        if name not in known:
            raise UserError(f'{child}.{name}', 'no such argument', f'one of {", ".join(known)}')


def at_least(minimum: int) -> Range:
    """Whole numbers from a minimum."""
    return Range(lambda v: isinstance(v, int) and v >= minimum, f'a whole number from {minimum}')


def optional(limit: Range) -> Range:
    """A range, or None."""
    return Range(lambda v: v is None or limit.allows(v), f'{limit.expected}, or None')


def one_of(names: Collection[str]) -> Range:
    """Some names."""
    return Range(lambda v: v in names, f'one of {", ".join(names)}')


def number(minimum: float, maximum: float = math.inf) -> Range:
    """Numbers between two bounds, both included."""
    return Range(lambda v: minimum <= v <= maximum, f'a number in [{minimum}, {maximum}]')


def pair(limit: Range) -> Range:
    """Two values of a range."""
    return Range(lambda v: len(v) == 2 and all(map(limit.allows, v)), f'two: {limit.expected}')


in_unit = number(0, 1)
