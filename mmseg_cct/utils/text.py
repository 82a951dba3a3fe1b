"""Text for messages, reports and tables."""

import difflib
import re
from collections.abc import Sequence


def one_line(text: object, max_length: int | None = None) -> str:
    """Joins the lines of a text by spaces; after `max_length` characters it ends with `...`."""
    line = ' '.join(str(text).split())
    if max_length is not None and len(line) > max_length:
        line = f'{line[:max_length]} ...'
    return line


def error_line(error: BaseException, max_length: int | None = None) -> str:
    """Formats an error in one line, `Type: message`."""
    return one_line(f'{type(error).__name__}: {error}'.removesuffix(': '), max_length)


def signed(points: float) -> str:
    """Writes a difference in points to one digit, without the minus of -0.0."""
    return f'{round(points, 1) + 0.0:+.1f}'.replace('-', '−')


def counted(number: int, noun: str) -> str:
    """Writes a number and its noun: `1 label`, `2 labels`."""
    return f'{number} {noun}{"" if number == 1 else "s"}'


def natural_order(name: str) -> list[str | int]:
    """Makes a key that sorts `frame_2` before `frame_10`."""
    parts = re.split(r'([0-9]+)', name)  # every second is a number
    return [int(part) if index % 2 else part for index, part in enumerate(parts)]


def close_names(name: str, names: Sequence[str], cutoff: float = 0.6) -> list[str]:
    """Finds at most three names similar to a misspelt one, the most similar first."""
    return difflib.get_close_matches(name, names, n=3, cutoff=cutoff)


def nearest(
    name: str, names: Sequence[str], otherwise: str | None = None, cutoff: float = 0.5
) -> str:
    """Says what a `Problem` expects: asks for the nearest names, or lists all."""
    if close := close_names(name, names, cutoff):
        return f'did you mean {" or ".join(close)}?'
    return f'one of {", ".join(names)}' if otherwise is None else otherwise
