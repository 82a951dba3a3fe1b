import re
from pathlib import Path

import mmseg
import pytest
import yaml

import mmseg_cct
from mmseg_cct.cli.commands import commands
from mmseg_cct.config.load import load_config

BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@pytest.fixture(scope='module')
def pages(project_root):
    """Text by path of the README and all pages."""
    paths = [project_root / 'README.md', *sorted((project_root / 'docs').rglob('*.md'))]
    return {path: path.read_text(encoding='utf-8') for path in paths}


def test_python_blocks_are_python(pages):
    blocks = 0
    for path, text in pages.items():
        found = [code for language, _, code in BLOCK.findall(text) if language == 'python']
        assert len(found) == text.count('```python'), path.name
        for code in found:
            compile(code, path.name, 'exec')
        blocks += len(found)
    assert blocks > 10


def test_scripts_and_configs_that_are_named_exist(pages, project_root):
    made = {title for text in pages.values() for _, title, _ in BLOCK.findall(text)}
    kind = re.compile(r'(?<![\w/])(?:tools|benchmarks|configs)/[\w/.-]+\.(?:py|sh)\b')
    named = {(path.name, name) for path, text in pages.items() for name in kind.findall(text)}
    assert len(named) > 20
    missing = {
        (page, name)
        for page, name in named
        if name not in made
        and not (project_root / name).exists()
        and not re.fullmatch(r'configs/(\w+)/[\w-]+_\1[\w-]*\.py', name)  # by new_config.py
    }
    assert not missing


def test_commands_that_are_named_exist(pages):
    named = {name for text in pages.values() for name in re.findall(r'mmseg-cct ([a-z-]+)', text)}
    assert len(named) > 10 and named <= set(commands())
    others = [path.name for path, text in pages.items() if re.search(r' tools/\w+\.py', text)]
    assert others == ['install.md']  # where the spellings are explained


def test_what_readme_contributing_and_citation_name_exists(pages, project_root):
    citation = yaml.safe_load((project_root / 'CITATION.cff').read_text(encoding='utf-8'))
    assert citation['version'] == mmseg_cct.__version__
    links = re.findall(r'\]\(([^)#]+)[^)]*\)', pages[project_root / 'README.md'])
    local = [link for link in links if '://' not in link]
    assert local
    text = (project_root / 'CONTRIBUTING.md').read_text(encoding='utf-8')
    roots = 'mmseg_cct|tests|tools|benchmarks|configs|docs|\\.ci'
    named = set(re.findall(rf'(?<![\w/])(?:{roots})/[\w/.-]*\w', text))
    assert len(named) > 15
    assert not [name for name in (*local, *named) if not (project_root / name).exists()]


@pytest.mark.parametrize('encoder', ['r50', 'mbv2-jpu'])
def test_a_copy_of_a_folder_config_takes_other_classes(project_root, tmp_path, encoder):
    (tmp_path / '_base_').symlink_to(project_root / 'configs' / '_base_')
    (tmp_path / 'cct').mkdir()
    text = (project_root / 'configs' / 'cct' / f'cct_{encoder}_folder.py').read_text()
    old, new = "('background', 'crack', 'rust')", "('background', 'crack', 'rust', 'bolt')"
    copied = tmp_path / 'cct' / 'mine.py'
    copied.write_text(text.replace(old, new))
    cct = load_config(str(copied), {})
    assert cct.train_cfg.max_iters == cct.param_scheduler.end
    for part in (cct.train_dataloader.dataset.unlabeled, cct.test_dataloader.dataset):
        assert tuple(part.classes) == ('background', 'crack', 'rust', 'bolt')
    assert cct.model.decode_head.num_classes == cct.model.auxiliary_head.num_classes == 4
    assert load_config(str(copied), {'method': 'supervised'}).model.auxiliary_head is None


@pytest.mark.slow
def test_files_and_trials_of_the_recipes_run(pages, project_root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / 'configs').mkdir()
    (tmp_path / 'configs' / '_base_').symlink_to(project_root / 'configs' / '_base_')
    (tmp_path / 'configs' / 'mmseg').symlink_to(Path(mmseg.__file__).parent / '.mim' / 'configs')
    page, trials = pages[project_root / 'docs' / 'recipes.md'], []
    for language, title, code in BLOCK.findall(page):
        if language == 'python' and title:
            (tmp_path / title).parent.mkdir(exist_ok=True)
            (tmp_path / title).write_text(code)
        elif language == 'python':
            trials.append(code)
    (tmp_path / 'my_cct' / '__init__.py').touch()
    assert len(trials) == 3
    names: dict[str, object] = {}
    for code in trials:  # one after the other: later ones go on with what earlier ones made
        exec(compile(code, 'docs/recipes.md', 'exec'), names)
