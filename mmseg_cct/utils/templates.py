"""Pages in Markdown and HTML from jinja templates."""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_RULES = {'l': '---', 'r': '---:'}


@dataclass(frozen=True)
class Table:
    """A table; `align` holds `l` or `r` for each column, by default only the first is `l`."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str | None = None


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[str]] = (), align: str | None = None
) -> str:
    """Formats a `Table` in Markdown, without a line break at the end."""
    rule = [_RULES[side] for side in align or 'l' + 'r' * (len(header) - 1)]
    lines = [[cell.replace('|', r'\|') for cell in line] for line in [header, rule, *rows]]
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines)


def render(template: str, **values: Any) -> str:
    """Fills in a template, `NAME.md.jinja` or `NAME.html.jinja` by its path in the package.

    In HTML a value is text and never becomes markup. In Markdown, `table` formats a `Table`, and
    empty lines that blocks leave behind become one.
    """
    pages = Environment(
        loader=FileSystemLoader(Path(__file__).parents[1]),
        autoescape=template.endswith('.html.jinja'),
        undefined=StrictUndefined,  # else a misspelt name is an empty place in the page
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters['table'] = lambda table: markdown_table(table.header, table.rows, table.align)
    page = pages.get_template(template).render(values)
    return re.sub(r'\n{3,}', '\n\n', page.rstrip()) + '\n'


def data_url(image: bytes, image_format: str = 'png') -> str:
    """Writes the content of an image file as an address, for pages in one file."""
    return f'data:image/{image_format};base64,{base64.b64encode(image).decode()}'
