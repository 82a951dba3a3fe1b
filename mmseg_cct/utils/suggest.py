"""Suggestions for a misspelt name."""

import difflib
from collections.abc import Sequence


def nearest(name: str, names: Sequence[str]) -> str:
    """What to say of a name that does not exist.

    Args:
        name: The name.
        names: Those that exist.

    Returns:
        The nearest of them as a question, or all.
    """
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f'did you mean {" or ".join(close)}?' if close else f'expected one of {", ".join(names)}'
