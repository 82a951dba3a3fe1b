import html
import inspect
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


@pytest.mark.parametrize('name', sorted(registered()))
def test_each_component_has_a_page_with_the_arguments_that_it_adds(site, name):
    cls = registered()[name]
    page = (site / 'api' / f'{name}.html').read_text(encoding='utf-8')
    shown = html.unescape(re.sub('<[^>]*>', '', page))
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
