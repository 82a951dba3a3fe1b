"""Mistakes in a config or in data: what one is, and the exception that lists them."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

# Set to anything, it makes tools show the traceback behind a line.
TRACEBACK_VARIABLE = 'MMSEG_CCT_TRACEBACK'
_SHOWN = 20  # problems of a stage that are printed; a wrong folder spoils every file


class Problem(NamedTuple):
    """A mistake that the user can mend.

    Attributes:
        key: The file or the dotted key of the setting, with its value if that is what is wrong.
        found: What is wrong there; empty if the value in `key` says it.
        expected: What would be right; a question stays as it is.
    """

    key: str
    found: str
    expected: str

    def __str__(self) -> str:
        """The line that a user reads."""
        expected = self.expected if self.expected.endswith('?') else f'expected {self.expected}'
        return f'{self.key}: {self.found}; {expected}' if self.found else f'{self.key}: {expected}'


class UserError(ValueError):
    """Mistakes in a config or in data that the user can mend.

    The message has a line for each: it names the file or key, the value found there and what was
    expected.

    Args:
        message: The lines; mostly one.
    """

    def __init__(self, message: object) -> None:
        # A DataLoader re-raises a worker's error with the worker's whole traceback as its message,
        # whose end is this class's name and the lines themselves.
        super().__init__(str(message).rsplit(f'{type(self).__name__}: ', 1)[-1].strip())

    def within(self, place: str) -> str:
        """Names the place of the mistakes, such as the key of a data set, in front of each line."""
        return '\n'.join(f'{place}: {line}' for line in str(self).splitlines())


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a line that says how far the work is and how it goes on."""


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
