"""docs/configuration.md against the classes: every argument is there, and no other one."""

import ast
import inspect
import re
from functools import reduce

import mmengine.registry
import mmseg.registry
import pytest
from mmengine.config import Config
from mmengine.registry import Registry

import mmseg_cct.plugin  # noqa: F401 (registers the components)

REQUIRED = '*required*'


def registered():
    """Classes of this package by the name under which a config knows them."""
    registries = {
        id(value): value
        for module in (mmengine.registry, mmseg.registry)
        for value in vars(module).values()
        if isinstance(value, Registry)
    }
    return {
        name: cls
        for registry in registries.values()
        for name, cls in registry.module_dict.items()
        if cls.__module__.startswith('mmseg_cct.') and inspect.isclass(cls)
    }


def arguments(cls):
    """Default by argument; `REQUIRED` where there is none."""
    parameters = inspect.signature(cls).parameters.values()
    return {
        p.name: REQUIRED if p.default is p.empty else p.default
        for p in parameters
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    }


def rows(text):
    """The cells of each row of the tables in a text, without the two rows of a head."""
    lines = [line for line in text.splitlines() if line.startswith('|')]
    cells = [[cell.strip() for cell in line.strip('|').split('|')] for line in lines]
    return [row for row in cells if row[0] not in ('argument', 'method', 'symbol', '---')]


@pytest.fixture(scope='module')
def page(project_root):
    return (project_root / 'docs' / 'configuration.md').read_text(encoding='utf-8')


@pytest.fixture(scope='module')
def documented(page):
    """Default by argument, as the page has it, for every class that has a heading."""
    found = {}
    for section in re.split(r'^### ', page, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition('\n')
        table = {}
        for name, _, default, _ in rows(body.split('\n## ')[0]):
            value = default if default == REQUIRED else ast.literal_eval(default.strip('`'))
            table[name.strip('`')] = value
        for cls in re.findall(r'`(\w+)`', title):
            assert cls not in found, f'{cls} has two headings'
            found[cls] = table
    return found


def test_every_registered_component_has_a_heading_and_no_heading_is_of_another(documented):
    missing = {
        name: ''.join(f'\n| `{a}` | ... | {d if d == REQUIRED else f"`{d!r}`"} | |'
                      for a, d in arguments(cls).items())
        for name, cls in registered().items() if name not in documented
    }  # fmt: skip
    assert not missing, 'docs/configuration.md lacks:\n' + '\n'.join(
        f'### `{name}`\n\n| argument | meaning | default | paper |\n| --- | --- | --- | --- |'
        f'{table}\n'
        for name, table in missing.items()
    )
    assert documented.keys() <= registered().keys()


@pytest.mark.parametrize('name', sorted(registered()))
def test_arguments_and_defaults_are_those_of_the_class(documented, page, name):
    cls = registered()[name]
    expected = arguments(cls)
    if expected and not documented[name] and '__init__' not in vars(cls):
        section = re.search(rf'^### `{name}`$(.*?)^##', page, re.MULTILINE | re.DOTALL)
        parents = '|'.join(base.__name__ for base in cls.__mro__[1:])
        assert re.search(rf'arguments\s+are\s+those\s+of\s+`({parents})`', section[1])
        return
    assert documented[name].keys() == expected.keys()
    assert documented[name] == expected


def test_the_papers_symbols_are_where_the_page_says(page, project_root):
    config = Config.fromfile(project_root / 'configs' / 'cct' / 'cct-abce_r50_camvid_50.py')
    table = rows(page.partition("## The paper's symbols")[2].partition('\n## ')[0])
    assert len(table) > 15
    for _, _, key, value in table:

        def step(owner, part):
            return owner[int(part)] if isinstance(owner, (list, tuple)) else owner[part]

        found = reduce(step, key.strip('`').split('.'), config)
        if value.startswith('`'):
            assert found == ast.literal_eval(value.strip('`')), key
    decoders = config.model.auxiliary_head.perturbations.values()
    assert sum(p.num_decoders for p in decoders) == 30


def test_configs_are_named_by_the_grammar(page, project_root):
    section = page.partition('## How configs are named')[2].partition('\n## ')[0]
    documented = {
        (folder.strip(' `'), method.strip('`'))
        for method, _, folders in rows(section)
        for folder in folders.split(',')
    }
    found = set()
    for path in (project_root / 'configs').glob('*/*.py'):
        if path.parent.name != '_base_':
            name = re.fullmatch(
                r'([a-z0-9-]+)(_[a-z0-9-]+)?_[a-z]+(-[a-z0-9]+)*(_\d+(-weak\w*)?)?', path.stem
            )
            assert name, f'{path}: not `method_model_data set_labels`'
            found.add((path.parent.name, name[1]))
    assert found == documented
