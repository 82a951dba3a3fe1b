"""The code of docs/recipes.md runs as it stands there."""

import re
from pathlib import Path

import mmseg
import pytest

BLOCK = re.compile(r'^```python(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@pytest.fixture
def blocks(project_root):
    """Title (or nothing) and code of each block, in the order of the page."""
    page = (project_root / 'docs' / 'recipes.md').read_text(encoding='utf-8')
    found = BLOCK.findall(page)
    assert len(found) == page.count('```python')
    return found


@pytest.mark.slow
def test_files_and_trials_of_the_recipes_run(blocks, project_root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / 'configs').mkdir()
    (tmp_path / 'configs' / '_base_').symlink_to(project_root / 'configs' / '_base_')
    (tmp_path / 'configs' / 'mmseg').symlink_to(Path(mmseg.__file__).parent / '.mim' / 'configs')
    for title, code in blocks:
        if title:
            (tmp_path / title).parent.mkdir(exist_ok=True)
            (tmp_path / title).write_text(code)
    (tmp_path / 'my_cct' / '__init__.py').touch()

    trials = [code for title, code in blocks if not title]
    assert len(trials) == 5
    names: dict[str, object] = {}
    for code in trials:  # one after the other: later ones go on with what earlier ones made
        exec(compile(code, 'docs/recipes.md', 'exec'), names)
