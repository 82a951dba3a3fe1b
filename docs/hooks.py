"""Makes the pages that mkdocs does not find in this folder: the home page and the API.

The home page is the README. Each public class and function has a page of the API, which names of
code in other pages link to. mkdocs runs this file (`hooks:` in mkdocs.yml).
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import griffe
from mkdocs.structure.files import File
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).resolve().parents[1]
# The public modules, in the order in which data passes through them: what they list in `__all__`
# has a page.
PUBLIC = {
    'config.load': 'Functions',
    'apis.prepare': 'Functions',
    'apis.train': 'Functions',
    'apis.test': 'Functions',
    'apis.run': 'Functions',
    'apis.predictor': 'Functions',
    'apis.prediction': 'Functions',
    'engine.safe_loading': 'Functions',
    'datasets': 'Data',
    'models.data_preprocessors': 'Batches',
    'models.segmentors': 'Segmentors',
    'models.backbones': 'Backbones and necks',
    'models.necks': 'Backbones and necks',
    'models.heads': 'Heads',
    'models.heads.main_logits': 'Heads',
    'models.layers': 'Heads',
    'models.perturbations': 'Perturbations',
    'models.losses': 'Losses',
    'engine.metrics': 'Evaluation',
    'engine.visualization': 'Visualization',
    'engine.hooks': 'Hooks',
    'preflight': 'Hooks',
    'engine.optimizers': 'Optimizer',
}
# A base without arguments of its own; its page names those of MMSegmentation's.
DOCUMENTED_BY_MMSEG = 'mmseg_cct.models.segmentors.cct.CCTSegmentor'
LINK = re.compile(r'\]\((?!https?:|#)([^)]+)\)')
# A symbol of the paper, in text and between the tags of HTML.
SYMBOL = re.compile(r'(?<![\w.])([Lλωθ])_(u|s|w|pw|f|adv|fg|bg)\b')
VERBATIM = re.compile(r'(<(title|pre|code|svg|script)\b.*?</\2>|<[^>]*>)', re.DOTALL)
CELL = re.compile(r'<td.*?</td>', re.DOTALL)
CODE = re.compile(r'<code>([^<]*[ -][^<]*)</code>')
NAME = re.compile(r'(<(pre|a|h\d)\b.*?</\2>)|<code>([A-Za-z_]\w+)</code>', re.DOTALL)


class Member(NamedTuple):
    """A public class or function and where its page belongs."""

    name: str
    path: str
    group: str
    summary: str
    bases: tuple[str, ...]  # the paths of those classes that take its further arguments


@cache
def members() -> dict[str, Member]:
    """Lists what has a page of the API, by name."""
    package = griffe.load('mmseg_cct', search_paths=[ROOT], docstring_parser='google')
    wanted = [('Functions', 'bases')]
    for module, group in PUBLIC.items():
        wanted += [(group, f'{module}.{name}') for name in package[module].exports]
    found = {}
    for group, path in wanted:
        member = package[path]
        member = member.final_target if member.is_alias else member
        summary = member.docstring.value.partition('\n\n')[0].replace('\n', ' ')
        bases = tuple(_bases(member)) if member.is_class else ()
        found[member.name] = Member(member.name, member.path, group, summary.rstrip(':'), bases)
    return found


def _bases(cls: griffe.Class) -> Iterator[str]:
    """Lists the package's classes that take what a class's constructor passes on."""
    for base in (cls, *cls.mro()):
        init = base.members.get('__init__')
        if base is not cls and (init or base.path == DOCUMENTED_BY_MMSEG):
            yield base.path
        if init and all(each.kind != griffe.ParameterKind.var_keyword for each in init.parameters):
            return


def on_config(config: Any) -> None:
    """Adds the pages of the API to the navigation."""
    groups: dict[str, list[str]] = {}
    for member in members().values():
        groups.setdefault(member.group, []).append(f'api/{member.name}.md')
    listed = [{group: pages} for group, pages in groups.items()]
    config.nav.append({'API': ['api/index.md', *listed]})


def on_files(files: Any, config: Any) -> None:
    """Adds the home page and the pages of the API."""
    pages = {'index.md': home(config.repo_url), 'api/index.md': overview()}
    for member in members().values():
        pages[f'api/{member.name}.md'] = (
            f'---\ntitle: {member.name}\nsearch:\n  exclude: true\n---\n\n::: {member.path}\n'
            + ''.join(map(more_arguments, member.bases))
        )
    for uri, text in pages.items():
        files.append(File.generated(config, uri, content=text))


def more_arguments(path: str) -> str:
    """Makes the part of a class's page on a base: its arguments, or a link."""
    if path == DOCUMENTED_BY_MMSEG:
        return f'\nFurther arguments: those of `{path.rpartition(".")[2]}`.\n'
    options = dict(members=False, heading_level=2, skip_local_inventory=True)
    return f'\n::: {path}\n    options: {json.dumps(options)}\n'


def home(repository: str) -> str:
    """Makes the home page of the README: links into `docs` stay, others lead to the repository."""

    def link(found: re.Match) -> str:
        target = found[1]
        inside = target.removeprefix('docs/')
        return f']({inside if inside != target else f"{repository}/blob/main/{target}"})'

    text = (ROOT / 'README.md').read_text(encoding='utf-8')
    text = re.sub(r'^\[!\[.*\n', '', text, flags=re.MULTILINE)  # badges come from elsewhere
    text = LINK.sub(link, text)
    return f'---\nhide: [navigation]\n---\n\n{text}'


def overview() -> str:
    """Makes the first page of the API."""
    lines = [
        '# API',
        'A config names registered classes: `type` is the name of a class, the other keys are its '
        'arguments. [Configuration](../configuration.md) says where each belongs. What is not '
        'listed here is internal and may change in any version.',
        'Shapes use the same [symbols](../configuration.md#symbols) everywhere.',
    ]
    for group in dict.fromkeys(member.group for member in members().values()):
        rows = [
            f'| [`{name}`]({name}.md) | {member.summary} |'
            for name, member in members().items()
            if member.group == group
        ]
        lines += [f'## {group}', '\n'.join(['| name | |', '| --- | --- |', *rows])]
    return '\n\n'.join(lines) + '\n'


def on_page_markdown(markdown: str, page: Page, **_: Any) -> None:
    """Ranks the pages in the search."""
    # a question finds the guide, then the reference, then a study
    boost = dict.fromkeys(('install.md', 'tutorial.md', 'own_data.md'), 3)
    boost |= {'configuration.md': 2}
    page.meta['search'] = {'boost': boost.get(page.file.src_uri, 1), **page.meta.get('search', {})}


def whole_words(code: re.Match) -> str:
    """Lets the code in a narrow cell of a table break at its spaces alone."""
    words = ' '.join(f'<span>{word}</span>' for word in code[1].split(' '))
    return f'<code>{words}</code>'


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Links names of the API, and lets code in tables break at spaces."""

    def link(found: re.Match) -> str:
        name = found[3]
        if name not in members() or page.file.src_uri == f'api/{name}.md':
            return found[0]
        url = get_relative_url(f'api/{name}.html', page.url)
        return f'<a href="{url}">{found[0]}</a>'

    html = NAME.sub(link, html.replace('::</p>', ':</p>'))
    return CELL.sub(lambda cell: CODE.sub(whole_words, cell[0]), html)


def on_post_page(output: str, **_: Any) -> str:
    """Typesets the symbols of the paper, as in L with an index u; the search keeps them as L_u."""
    pieces = VERBATIM.split(output)  # text, verbatim or tag, name of the tag, text, ...
    for index in range(0, len(pieces), 3):
        pieces[index] = SYMBOL.sub(r'<i>\1</i><sub>\2</sub>', pieces[index])
    return ''.join(piece for index, piece in enumerate(pieces) if index % 3 != 2)
