"""Ranges of arguments, stated beside the argument.

    @ranges(num_decoders=at_least(2), loss_weight=finite)
    def __init__(self, loss_weight: float = 1.0, num_decoders: int = 8) -> None: ...

The constructor rejects other values.
"""

import functools
import inspect
import math
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple, TypeVar

from mmseg_cct.errors import Problem, UserError, raise_problems

from .text import nearest

F = TypeVar('F', bound=Callable[..., Any])


class Range(NamedTuple):
    """The values that an argument `allows`, and what is `expected` in words."""

    allows: Callable[[Any], bool]
    expected: str

    def problem(self, key: str, value: Any) -> Problem | None:
        """Returns the problem of a value, or None if it is allowed."""
        return None if self.allows(value) else Problem(f'{key}={value!r}', '', self.expected)


def ranges(**by_name: Range) -> Callable[[F], F]:
    """Makes a decorator for constructors that rejects arguments out of range."""

    def decorate(init: F) -> F:
        signature = inspect.signature(init)

        @functools.wraps(init)
        def checked(self: Any, *args: Any, **kwargs: Any) -> None:
            values = signature.bind(self, *args, **kwargs).arguments
            limits = [(n, f'{type(self).__name__}.{n}') for n in by_name if n in values]
            problems = (by_name[name].problem(key, values[name]) for name, key in limits)
            raise_problems(filter(None, problems))
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
            raise UserError(f'{child}.{name}', 'no such argument', nearest(name, known))


def require_value(key: str, value: Any, expected: Any, why: str) -> None:
    """Rejects a setting that does not fit what another part gives, as `why` says."""
    if value != expected:
        raise UserError(f'{key}={value}', '', f'{expected}, {why}')


def at_least(minimum: int) -> Range:
    """Whole numbers from a minimum."""
    # True is an int for Python, and in a config a mistake
    return Range(lambda v: type(v) is int and v >= minimum, f'a whole number from {minimum}')


def optional(limit: Range) -> Range:
    """A range, or None."""
    return Range(lambda v: v is None or limit.allows(v), f'{limit.expected}, or None')


def one_of(names: Collection[str]) -> Range:
    """Some names."""
    return Range(lambda v: isinstance(v, str) and v in names, f'one of {", ".join(names)}')


def number(minimum: float = -math.inf, maximum: float = math.inf, expected: str = '') -> Range:
    """Finite numbers between two bounds, both included."""

    def allows(value: Any) -> bool:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and math.isfinite(value) and minimum <= value <= maximum

    return Range(allows, expected or f'a finite number from {minimum}')


def pair(limit: Range) -> Range:
    """Two values of a range, the lower first."""

    def allows(value: Any) -> bool:
        is_pair = isinstance(value, (list, tuple)) and len(value) == 2
        return is_pair and all(map(limit.allows, value)) and value[0] <= value[1]

    return Range(allows, f'two values in order, each {limit.expected}')


finite = number(expected='a finite number')
in_unit = number(0, 1, 'a number in [0, 1]')
positive = Range(lambda v: finite.allows(v) and v > 0, 'a positive number')
positive_unit = Range(lambda v: in_unit.allows(v) and v > 0, 'a number in (0, 1]')
unit_below_one = Range(lambda v: in_unit.allows(v) and v < 1, 'a number in [0, 1)')
open_unit = Range(lambda v: in_unit.allows(v) and 0 < v < 1, 'a number in (0, 1)')
text = Range(lambda v: isinstance(v, str), 'a text')
