import html
import inspect
import json
import re
import shutil
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
    if own.__module__.startswith('mmseg_cct') and 'arguments it takes' not in own.__doc__:
        for parameter in list(inspect.signature(own.__init__).parameters.values())[1:]:
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                assert re.search(rf'^\s*{parameter.name}$', shown, re.MULTILINE), parameter.name


def test_the_home_page_is_the_readme_and_leads_to_pages_of_the_site(site, project_root):
    readme = (project_root / 'README.md').read_text(encoding='utf-8')
    shown = (site / 'index.html').read_text(encoding='utf-8')
    assert all(title in shown for title in re.findall('^## (.*)$', readme, re.MULTILINE))
    assert 'href="own_data.html"' in shown and '/blob/main/CONTRIBUTING.md"' in shown


# Types each query into the search of a frame of its own, and shows the links of the answers. The
# browser's clock skips idle time, but not the work of the search, which has threads of its own: so
# waiting is work, too.
TYPING = """<body><script>
for (const query of QUERIES) {
  const frame = document.createElement('iframe')
  frame.src = 'index.html?q=' + encodeURIComponent(query)
  document.body.append(frame)
}
let looks = 1000
function look() {
  const answers = [...document.querySelectorAll('iframe')].map(
    frame => [...frame.contentDocument.querySelectorAll('.md-search-result__link')].map(a => a.href)
  )
  if (looks-- && answers.some(links => !links.length)) {
    for (let step = 0; step < 1e6; step++) Math.random()
    setTimeout(look, 10)
  } else document.body.textContent = JSON.stringify(answers)
}
look()
</script>"""


def test_the_title_of_a_page_and_whole_words_find_it(site):
    browser = shutil.which('chromium') or shutil.which('google-chrome')
    if browser is None:
        pytest.skip('types into the search of a browser: Chromium')
    heading = re.compile('<h1[^>]*>(.*?)<', re.DOTALL)
    queries = {
        html.unescape(heading.search(page.read_text(encoding='utf-8'))[1]): page.name
        for page in site.glob('*.html')
        if page.name not in ('404.html', 'index.html')
    }
    queries |= dict(training='tutorial.html', predictions='own_data.html')
    assert len(queries) > 10
    page = site / 'typing.html'
    page.write_text(TYPING.replace('QUERIES', json.dumps([*queries])))
    command = [browser, '--headless=new', '--no-sandbox', '--disable-gpu', '--dump-dom']
    command += ['--allow-file-access-from-files', '--virtual-time-budget=30000', page.as_uri()]
    shown = subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL, timeout=120)
    answers = json.loads(html.unescape(re.search('<body>(.*?)</body>', shown, re.DOTALL)[1]))
    for (query, name), links in zip(queries.items(), answers, strict=True):
        assert any(f'/{name}' in link for link in links[:40]), query
