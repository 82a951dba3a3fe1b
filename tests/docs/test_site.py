"""The site builds without a warning, with the home page and the API that docs/hooks.py makes."""

import html
import inspect
import json
import re
import subprocess
import sys

import pytest
from components import registered


@pytest.fixture(scope='module')
def site(slow, project_root, tmp_path_factory):
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp('site')
    build = [sys.executable, '-m', 'mkdocs', 'build', '--strict', '--site-dir', str(folder)]
    done = subprocess.run(build, cwd=project_root, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return folder


def text_of(page):
    return html.unescape(re.sub('<[^>]*>', '', page.read_text(encoding='utf-8')))


@pytest.mark.parametrize('name', sorted(registered()))
def test_each_component_has_a_page_with_the_arguments_that_it_adds(site, name):
    cls = registered()[name]
    shown = text_of(site / 'api' / f'{name}.html')
    assert f'api/{name}.html' in (site / 'configuration.html').read_text(encoding='utf-8')
    own = next(c for c in cls.__mro__ if '__init__' in vars(c))
    if own is cls and 'arguments it takes' not in own.__doc__:
        for parameter in list(inspect.signature(own.__init__).parameters.values())[1:]:
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                assert re.search(rf'^\s*{parameter.name}$', shown, re.MULTILINE), parameter.name


def test_the_home_page_is_the_readme_and_leads_to_pages_of_the_site(site, project_root):
    readme = (project_root / 'README.md').read_text(encoding='utf-8')
    shown = (site / 'index.html').read_text(encoding='utf-8')
    assert all(title in shown for title in re.findall('^## (.*)$', readme, re.MULTILINE))
    assert 'href="own_data.html"' in shown and '/blob/main/CONTRIBUTING.md"' in shown


def test_symbols_are_typeset_but_not_in_code_and_the_search_finds_them_outside_the_api(site):
    shown = (site / 'cct_plus.html').read_text(encoding='utf-8')
    assert '<i>λ</i><sub>s</sub>' in shown and 'λ_s' not in shown
    options = (site / 'how_a_run_is_put_together.html').read_text(encoding='utf-8')
    assert 'λ_u, at the end of its ramp' in options
    index = json.loads((site / 'search' / 'search_index.json').read_text(encoding='utf-8'))
    places = {entry['location'].partition('#')[0] for entry in index['docs']}
    assert 'configuration.html' in places and 'api/PSPNeck.html' not in places
    assert any('λ_u' in entry['text'] for entry in index['docs'])


def test_pages_of_the_checkout_hold_no_generated_part(project_root):
    for page in (project_root / 'docs').glob('*.md'):
        text = page.read_text(encoding='utf-8')
        assert not re.search(r'^:::|\]\[mmseg_cct', text, re.MULTILINE), page.name


def test_readme_and_pages_stay_short(project_root):
    def lines(page):
        return len(page.read_text(encoding='utf-8').splitlines())

    readme = lines(project_root / 'README.md')
    assert readme <= 110
    assert readme + sum(map(lines, (project_root / 'docs').rglob('*.md'))) <= 3500
