"""Markdown tables, and text escaped for them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_RULES = {'l': '---', 'r': '---:'}
# What begins markup or a link anywhere in a line, and what begins a block at its start.
_INLINE = re.compile(r'[\\`*~\[\]]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=\bwww)\.', re.IGNORECASE)
_BLOCK = re.compile(r'^(\d*)(?=#{1,6}(?:\s|$)|>|[-+](?:\s|$)|(?<=\d)[.)]\s)')


class Markdown(str):
    """Text that is Markdown already."""


@dataclass(frozen=True)
class Table:
    """A table; `align` holds `l` or `r` for each column, by default only the first is `l`."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str | None = None


def escaped(value: Any) -> Markdown:
    """Writes a value as one line of Markdown in which it is no markup, link or picture."""
    if isinstance(value, Markdown):
        return value
    line = re.sub(r'&(?=#?\w+;)', '&amp;', ' '.join(str(value).split())).replace('<', '&lt;')
    return Markdown(_BLOCK.sub(r'\1\\', _INLINE.sub(r'\\\g<0>', line)))


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[str]] = (), align: str | None = None
) -> str:
    """Formats a `Table` in Markdown, without a line break at the end."""
    rule = [_RULES[side] for side in align or 'l' + 'r' * (len(header) - 1)]
    lines = [[cell.replace('|', r'\|') for cell in line] for line in [header, rule, *rows]]
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines)
