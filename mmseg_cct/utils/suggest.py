"""Suggestions for a misspelt name."""

import difflib
from collections.abc import Sequence


def close_names(name: str, names: Sequence[str], cutoff: float = 0.6) -> list[str]:
    """Finds the names that a misspelt one may stand for.

    Args:
        name: The name.
        names: Those that exist.
        cutoff: Similarity that is asked for, in [0, 1].

    Returns:
        At most three, the most similar first.
    """
    return difflib.get_close_matches(name, names, n=3, cutoff=cutoff)


def nearest(name: str, names: Sequence[str]) -> str:
    """Suggests the nearest names as a question, or all.

    Args:
        name: The name.
        names: Those that exist.

    Returns:
        The end of an error message.
    """
    close = close_names(name, names, cutoff=0.5)
    return f'did you mean {" or ".join(close)}?' if close else f'expected one of {", ".join(names)}'
