"""Markdown tables."""

from collections.abc import Sequence

_RULES = {'l': '---', 'r': '---:'}


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[str]] = (), align: str | None = None
) -> str:
    """Formats a Markdown table, without a line break at the end.

    `align` holds `l` or `r` for each column; by default only the first is left-aligned.
    """
    rule = [_RULES[side] for side in align or 'l' + 'r' * (len(header) - 1)]
    lines = [[cell.replace('|', r'\|') for cell in line] for line in [header, rule, *rows]]
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines)
