"""Suggestions for a misspelt name."""

import difflib
from collections.abc import Sequence


def close_names(name: str, names: Sequence[str], cutoff: float = 0.6) -> list[str]:
    """Finds at most three names similar to a misspelt one, the most similar first."""
    return difflib.get_close_matches(name, names, n=3, cutoff=cutoff)


def nearest(name: str, names: Sequence[str]) -> str:
    """Says what a `Problem` expects: asks for the nearest names, or lists all."""
    close = close_names(name, names, cutoff=0.5)
    return f'did you mean {" or ".join(close)}?' if close else f'one of {", ".join(names)}'
