"""Pages in Markdown and HTML from jinja templates; a value is text and never becomes markup."""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

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


def render(template: str, **values: Any) -> str:
    """Fills in a template, `NAME.md.jinja` or `NAME.html.jinja` by its path in the package.

    In Markdown, `table` formats a `Table`, `code` keeps a line as it is, for code blocks, and
    empty lines that blocks leave behind become one.
    """
    pages = _HTML if template.endswith('.html.jinja') else _MARKDOWN
    return re.sub(r'\n{3,}', '\n\n', pages.get_template(template).render(values).rstrip()) + '\n'


def data_url(image: bytes, kind: str = 'png') -> str:
    """Writes the content of an image file as an address, for pages in one file."""
    return f'data:image/{kind};base64,{base64.b64encode(image).decode()}'


def _environment(**settings: Any) -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parents[1]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **settings,
    )


def _table(table: Table) -> Markdown:
    cells = [[escaped(cell) for cell in line] for line in (table.header, *table.rows)]
    return Markdown(markdown_table(cells[0], cells[1:], table.align))


_HTML = _environment(autoescape=True)
_MARKDOWN = _environment(finalize=escaped)
_MARKDOWN.filters |= dict(table=_table, code=lambda line: Markdown(' '.join(line.splitlines())))
