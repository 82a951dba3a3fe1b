"""What a package lists in `__all__` has a page of the API, and what a config names is listed."""

import importlib
import importlib.util

import pytest
from components import registered


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


def test_the_page_on_configs_names_each_component(project_root):
    page = (project_root / 'docs' / 'configuration.md').read_text(encoding='utf-8')
    assert not [name for name in registered() if f'`{name}`' not in page]
