"""Mistakes in a config or in data: what one is, and the exception that lists them."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

# Environment variable: if it is set to anything, tools show the traceback behind an error line.
TRACEBACK_VARIABLE = 'MMSEG_CCT_TRACEBACK'
_SHOWN = 20  # problems to print: a wrong folder would give one for every file


class Problem(NamedTuple):
    """A mistake that the user can fix.

    Attributes:
        key: The file or the dotted key of the setting, with its value if the value is wrong.
        found: What is wrong there; empty if the value in `key` shows it.
        expected: What would be right; a question is printed as it is.
    """

    key: str
    found: str
    expected: str

    def __str__(self) -> str:
        """The line that a user reads."""
        expected = self.expected if self.expected.endswith('?') else f'expected {self.expected}'
        return f'{self.key}: {self.found}; {expected}' if self.found else f'{self.key}: {expected}'


class UserError(ValueError):
    """Mistakes in a config or in data that the user can fix.

    The message has a line for each mistake, with the file or key, the value found there and what
    was expected.

    Args:
        message: One line for each mistake, usually one.
    """

    def __init__(self, message: object) -> None:
        # A DataLoader re-raises a worker's error with the worker's whole traceback as its message.
        # The message ends with this class's name and the lines themselves.
        super().__init__(str(message).rsplit(f'{type(self).__name__}: ', 1)[-1].strip())

    def within(self, place: str) -> str:
        """Puts the place of the mistakes, such as the key of a data set, before each line."""
        return '\n'.join(f'{place}: {line}' for line in str(self).splitlines())


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a line that says how far the work got and how to resume it."""


def raise_problems(problems: Iterable[Problem | UserError]) -> None:
    """Raises an error that lists all problems, if there are any."""
    lines = list(islice(dict.fromkeys(_lines(problems)), _SHOWN + 1))
    if lines[_SHOWN:]:
        lines[_SHOWN] = f'{_SHOWN} problems are shown; there are more'
    if lines:
        raise UserError('\n'.join(lines))


def _lines(problems: Iterable[Problem | UserError]) -> Iterator[str]:
    try:
        for problem in islice(problems, _SHOWN + 1):
            yield str(problem)
    except UserError as error:
        yield str(error)
