"""The pages on configs: every component, argument, method and named hook is on them."""

import ast
import importlib.util
import inspect
import re
from functools import reduce
from types import SimpleNamespace

import mmengine.registry
import mmseg.registry
import pytest
from mmengine.registry import Registry

import mmseg_cct.plugin  # noqa: F401 (registers the components)
from mmseg_cct.config.compose import method_names
from mmseg_cct.config.load import load_config


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


def rows(text):
    """The cells of each row of the tables in a text, without the two rows of a head."""
    lines = [line for line in text.splitlines() if line.startswith('|')]
    cells = [[cell.strip() for cell in line.strip('|').split('|')] for line in lines]
    return [row for row in cells if row[0] not in ('method', 'symbol', '---')]


@pytest.fixture(scope='module')
def page(project_root):
    return (project_root / 'docs' / 'configuration.md').read_text(encoding='utf-8')


@pytest.fixture(scope='module')
def hooks(project_root):
    spec = importlib.util.spec_from_file_location('hooks', project_root / 'docs' / 'hooks.py')
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    return hooks


@pytest.fixture(scope='module')
def sections(hooks, page):
    """The section of each class, as the site shows it."""
    this_page = SimpleNamespace(file=SimpleNamespace(src_uri='configuration.md'))
    shown = re.split(r'^### ', hooks.on_page_markdown(page, this_page), flags=re.MULTILINE)[1:]
    by_name = {re.match(r'`(\w+)`', section)[1]: section for section in shown}
    assert len(by_name) == len(shown)  # one section for each
    return by_name


def test_symbols_are_typeset_but_not_in_code(hooks):
    shown = hooks.on_page_content('<p id="L_u">L_u, (ω_u) L_unit<code>L_u</code></p>λ_pw')
    assert shown == (
        '<p id="L_u"><i>L</i><sub>u</sub>, (<i>ω</i><sub>u</sub>) L_unit<code>L_u</code></p>'
        '<i>λ</i><sub>pw</sub>'
    )


def test_every_registered_component_has_a_section_and_no_section_is_of_another(sections):
    assert sections.keys() == registered().keys()


@pytest.mark.parametrize('name', sorted(registered()))
def test_a_section_shows_the_arguments_that_the_class_adds(sections, name):
    cls = registered()[name]
    own = next(c for c in cls.__mro__ if '__init__' in vars(c))
    if not own.__module__.startswith('mmseg_cct.') or 'arguments it takes' in own.__doc__:
        return
    for parameter in list(inspect.signature(own.__init__).parameters.values())[1:]:
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            default = '*required*' if parameter.default is parameter.empty else '`'
            assert f'| `{parameter.name}` | {default}' in sections[name]


def test_the_papers_symbols_are_where_the_page_says(page):
    config = load_config('cct-abce_r50_camvid_50', {})
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


def test_the_page_on_runs_lists_the_methods_and_the_named_hooks(project_root):
    page = (project_root / 'docs' / 'how_a_run_is_put_together.md').read_text(encoding='utf-8')
    methods = page.partition('\n| method |')[2].partition('\n\n')[0]
    named = [name for row in rows(methods) for name in re.findall('`([^`]+)`', row[0])]
    assert sorted(named) == sorted(method_names())

    hooks = page.partition('\n| name in')[2].partition('\n\n')[0]
    named = {name for row in rows(hooks) for name in re.findall('`([^`]+)`', row[0])}
    runs = ('cct-abce_mbv2-jpu_idd-lite_20', 'cct-strong_r50_voc_183')
    present = [load_config(name, {}).default_hooks.keys() for name in runs]
    assert named - {'default_hooks'} <= set().union(*present)


def test_settings_are_named_by_the_grammar(project_root):
    paths = sorted((project_root / 'configs').glob('*/*.py'))
    stems = [path.stem for path in paths if path.parent.name not in ('_base_', 'methods')]
    assert len(stems) > 20
    pattern = r'[a-z0-9-]+(_[a-z0-9-]+)?_[a-z]+(-[a-z0-9]+)*(_\d+(-weak\w*)?)?'
    assert not [stem for stem in stems if not re.fullmatch(pattern, stem)]
