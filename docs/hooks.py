"""Writes each class's summary and table of arguments into configuration.md, from its docstring.

mkdocs runs it (`hooks:` in mkdocs.yml). A heading such as ``### `PSPNeck` `` asks for them.
"""

import re
from functools import cache
from pathlib import Path

import griffe
from mkdocs.structure.pages import Page

SECTION = re.compile(r'^### `(\w+)`\n(.*?)(?=^##|\Z)', re.MULTILINE | re.DOTALL)
ARGUMENTS = griffe.DocstringSectionKind.parameters


@cache
def classes() -> dict[str, griffe.Class]:
    """Reads the package without importing it.

    Returns:
        Its public classes by name.
    """
    root = Path(__file__).resolve().parents[1]
    package = griffe.load('mmseg_cct', search_paths=[root], docstring_parser='google')
    found, modules = {}, [package]
    for module in modules:
        for member in module.members.values():
            if member.is_alias:
                continue
            if member.is_module:
                modules.append(member)
            elif member.is_class and not member.name.startswith('_'):
                found[member.name] = member
    return found


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
        The text; of configuration.md with summaries and tables.
    """
    if page.file.src_uri != 'configuration.md':
        return markdown

    def section(found: re.Match) -> str:
        name, prose = found.groups()
        cls = classes()[name]
        summary = cls.docstring.value.split('\n\n')[0]
        return f'### `{name}`\n\n{summary} ([API][{cls.path}])\n\n{prose}\n{table(cls)}\n\n'

    return SECTION.sub(section, markdown)
