"""Writes what the pages take from docstrings; mkdocs runs it (`hooks:` in mkdocs.yml).

In configuration.md a heading such as ``### `PSPNeck` `` asks for the class's summary and a table of
its arguments. In api/*.md a line such as `::: mmseg_cct.engine.*` asks for all modules below.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import griffe
from mkdocs.structure.pages import Page

SECTION = re.compile(r'^### `(\w+)`\n(.*?)(?=^##|\Z)', re.MULTILINE | re.DOTALL)
MODULES = re.compile(r'^::: mmseg_cct\.(.+)\.\*$', re.MULTILINE)
# A symbol of the paper, in text and between the tags of HTML.
SYMBOL = re.compile(r'(?<![\w.])([Lλωθ])_(u|s|w|pw|f|adv|fg|bg)\b')
VERBATIM = re.compile(r'(<(pre|code|svg|script)\b.*?</\2>|<[^>]*>)', re.DOTALL)
ARGUMENTS = griffe.DocstringSectionKind.parameters


@cache
def package() -> griffe.Module:
    """Reads the package without importing it."""
    root = Path(__file__).resolve().parents[1]
    return griffe.load('mmseg_cct', search_paths=[root], docstring_parser='google')


def modules(module: griffe.Module) -> Iterator[griffe.Module]:
    """Yields a module and all below it, by name."""
    yield module
    for _, below in sorted(module.modules.items()):
        if not below.is_alias:
            yield from modules(below)


def public(module: griffe.Module) -> list[griffe.Object]:
    """Lists the documented classes and functions that a module defines."""
    members = [*module.classes.values(), *module.functions.values()]
    own = [each for each in members if not (each.is_alias or each.name.startswith('_'))]
    return [each for each in own if each.docstring]


@cache
def classes() -> dict[str, griffe.Class]:
    """Lists the public classes of the package by name."""
    found = [each for module in modules(package()) for each in public(module)]
    return {each.name: each for each in found if each.is_class}


def reference(path: str) -> str:
    """Asks mkdocstrings for all modules of a package; of one member, for the member.

    Args:
        path: Dotted path of the package below `mmseg_cct`.

    Returns:
        The lines.
    """
    own = [(module, public(module)) for module in modules(package()[path])]
    paths = [found[0].path if len(found) == 1 else module.path for module, found in own if found]
    return '\n\n'.join(f'::: {each}' for each in paths)


def table(cls: griffe.Class) -> str:
    """Makes a Markdown table of the arguments that a class or its nearest parent documents.

    Args:
        cls: The class.

    Returns:
        The table; empty where all arguments are those of another library's class.
    """
    for owner in [cls, *cls.mro()]:
        for section in owner.docstring.parsed if owner.docstring else []:
            if section.kind is ARGUMENTS:
                rows = ['| argument | default | meaning |', '| --- | --- | --- |']
                for argument in section.value:
                    meaning = ' '.join(argument.description.split()).replace('|', '\\|')
                    default = '*required*' if argument.default is None else f'`{argument.default}`'
                    if argument.name.startswith('*'):
                        default = ''
                    rows.append(f'| `{argument.name}` | {default} | {meaning} |')
                return '\n'.join(rows)
    return ''


def on_page_markdown(markdown: str, page: Page, **_) -> str:
    """Is called by mkdocs with the text of each page.

    Args:
        markdown: The text.
        page: The page.

    Returns:
        The text with what its docstrings give.
    """
    markdown = MODULES.sub(lambda found: reference(found[1]), markdown)
    if page.file.src_uri != 'configuration.md':
        return markdown

    def section(found: re.Match) -> str:
        name, prose = found.groups()
        cls = classes()[name]
        summary = re.sub('::$', '.', cls.docstring.value.split('\n\n')[0])
        return f'### `{name}`\n\n{summary} ([API][{cls.path}])\n\n{prose}\n{table(cls)}\n\n'

    return SECTION.sub(section, markdown)


def on_page_content(html: str, **_) -> str:
    """Is called by mkdocs with the content of each page.

    Args:
        html: The content.

    Returns:
        The content with the symbols of the paper typeset, as in L with an index u, and one colon
        before an example.
    """
    html = html.replace('::</p>', ':</p>')
    pieces = VERBATIM.split(html)  # text, verbatim or tag, name of the tag, text, ...
    for index in range(0, len(pieces), 3):
        pieces[index] = SYMBOL.sub(r'<i>\1</i><sub>\2</sub>', pieces[index])
    return ''.join(piece for index, piece in enumerate(pieces) if index % 3 != 2)
