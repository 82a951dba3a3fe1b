import re
from pathlib import Path

import mmseg
import pytest

BLOCK = re.compile(r'^```python(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_files_and_trials_of_the_recipes_run(installed, project_root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / 'configs').mkdir()
    (tmp_path / 'configs' / '_base_').symlink_to(project_root / 'configs' / '_base_')
    (tmp_path / 'configs' / 'mmseg').symlink_to(Path(mmseg.__file__).parent / '.mim' / 'configs')
    page = (project_root / 'docs' / 'recipes.md').read_text(encoding='utf-8')
    trials = []
    for title, code in BLOCK.findall(page):
        if title:
            (tmp_path / title).parent.mkdir(exist_ok=True)
            (tmp_path / title).write_text(code)
        else:
            trials.append(code)
    (tmp_path / 'my_cct' / '__init__.py').touch()
    assert trials
    names: dict[str, object] = {}
    for code in trials:  # one after the other: later ones go on with what earlier ones made
        exec(compile(code, 'docs/recipes.md', 'exec'), names)
