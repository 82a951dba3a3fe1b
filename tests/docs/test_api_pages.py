"""What a package lists in `__all__` has a page of the API, and what a config names is listed."""

import ast
import importlib
import importlib.util
import re

import pytest
from components import registered

from mmseg_cct.config.load import load_config
from mmseg_cct.config.walk import get_by_key


@pytest.fixture(scope='module')
def hooks(project_root):
    """`docs/hooks.py`, which makes the pages."""
    spec = importlib.util.spec_from_file_location('hooks', project_root / 'docs' / 'hooks.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_are_of_the_public_names_and_those_hold_all_components(hooks):
    public = {'bases'}
    for name in (*hooks.PUBLIC, 'models'):
        module = importlib.import_module(f'mmseg_cct.{name}')
        assert all(hasattr(module, member) for member in module.__all__)
        public |= {*module.__all__}
    assert public == {*hooks.members()}
    assert {*registered()} <= public


@pytest.fixture(scope='module')
def page(project_root):
    """The page on configs."""
    return (project_root / 'docs' / 'configuration.md').read_text(encoding='utf-8')


def test_the_page_on_configs_names_each_component(page):
    assert not [name for name in registered() if f'`{name}`' not in page]


def test_the_papers_symbols_are_where_the_page_says(page):
    section = page.partition("## The paper's symbols")[2].partition('\n## ')[0]
    config = load_config('cct_r50_camvid_50', {'method': 'cct-abce'})
    rows = re.findall(r'\| `([\w.]+)` \| `([^`]+)` \|$', section, re.MULTILINE)
    assert len(rows) > 12
    for key, value in rows:
        assert get_by_key(config, key) == ast.literal_eval(value), key
    decoders = config.model.auxiliary_head.perturbations.values()
    assert sum(p.num_decoders for p in decoders) == 30
