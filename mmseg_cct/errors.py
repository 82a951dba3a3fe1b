"""Mistakes in a config or in data: what one is, and the exception that lists them."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple
from unicodedata import category

# Environment variable: if it is set to anything, tools show the traceback behind an error line.
TRACEBACK_VARIABLE = 'MMSEG_CCT_TRACEBACK'
_SHOWN = 20  # problems to print: a wrong folder would give one for every file


def printable(text: object) -> str:
    """Escapes characters that would move a terminal's cursor or begin a line, as file names may."""
    hidden = ('Cc', 'Cs', 'Zl', 'Zp')
    return ''.join(ascii(c)[1:-1] if category(c) in hidden else c for c in str(text))


class Problem(NamedTuple):
    """A mistake that the user can fix."""

    key: object  # the file or the dotted key of the setting; alone, it is the whole sentence
    found: object = ''  # what is wrong there; empty if the value in `key` shows it
    expected: str = ''  # what would be right; a question is printed as it is

    def __str__(self) -> str:
        """The line that a user reads."""
        expected = self.expected
        if expected and not expected.endswith('?'):
            expected = f'expected {expected}'
        message = '; '.join(filter(None, (str(self.found), expected)))
        if message:
            return printable(f'{self.key}: {message}')
        return '\n'.join(map(printable, str(self.key).split('\n')))  # whole sentences


class UserError(ValueError):
    """Mistakes in a config or in data that the user can fix; the message has a line for each.

    It is made of one plain sentence, of the parts of a `Problem`, or of a list of them.
    """

    def __init__(self, key: object, found: object = '', expected: str = '') -> None:
        super().__init__(key, found, expected)  # it goes to another process by these
        problems = key if isinstance(key, list) else [Problem(key, found, expected)]
        self.problems: tuple[Problem, ...] = tuple(problems)

    def __str__(self) -> str:
        """A line for each mistake."""
        return '\n'.join(map(str, self.problems))

    def within(self, outer_key: object) -> 'UserError':
        """Makes an error of the same mistakes below a key, such as that of a data set."""
        return self.renamed(lambda key: f'{outer_key}: {key}')

    def renamed(self, rename: Callable[[str], str]) -> 'UserError':
        """Makes an error of the same mistakes under other keys."""
        return UserError([p._replace(key=rename(str(p.key))) for p in self.problems])


def raise_problems(problems: Iterable[Problem | UserError]) -> None:
    """Raises an error that lists all problems, if there are any."""
    listed: list[Problem] = []
    try:
        for problem in islice(problems, _SHOWN + 1):
            listed += problem.problems if isinstance(problem, UserError) else (problem,)
    except UserError as error:  # a search that cannot go on
        listed += error.problems
    listed = list(dict.fromkeys(listed))  # each once, in order
    if listed[_SHOWN:]:
        listed[_SHOWN:] = [Problem(f'{_SHOWN} problems are shown; there are more')]
    if listed:
        raise UserError(listed)
