"""Pages from jinja templates, in which a value is text: no name in it becomes markup."""

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .markdown import Markdown, Table, escaped, markdown_table


def render(template: str, **values: Any) -> str:
    """Fills in a template, `NAME.md.jinja` or `NAME.html.jinja` by its path in the package.

    In Markdown, `table` formats a `Table`, `code` keeps a line as it is, for code blocks, and
    empty lines that blocks leave behind become one.
    """
    pages = _HTML if template.endswith('.html.jinja') else _MARKDOWN
    return re.sub(r'\n{3,}', '\n\n', pages.get_template(template).render(values).rstrip()) + '\n'


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
