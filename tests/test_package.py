import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

pytestmark = pytest.mark.slow

IGNORED = (
    '.git', '.venv*', '__pycache__', 'data', '*.aside', 'work_dirs', 'site', '*.egg-info',
    '.*_cache',
)  # fmt: skip
CONFIG = """
_base_ = 'mmseg_cct::demo/cct_shapes.py'
train_cfg = dict(max_iters=2, val_interval=2)
"""


@pytest.fixture(scope='module')
def built(project_root, tmp_path_factory):
    """A source archive, the wheel made of it, and the wheel's content in a folder of its own."""
    folder = tmp_path_factory.mktemp('package')
    source = folder / 'source'
    shutil.copytree(project_root, source, symlinks=True, ignore=shutil.ignore_patterns(*IGNORED))
    build = 'import sys, setuptools.build_meta as backend; backend.build_{}(sys.argv[1])'

    def run(*command, cwd):
        done = subprocess.run(
            [sys.executable, *map(str, command)], cwd=cwd, text=True, capture_output=True
        )
        assert done.returncode == 0, done.stderr
        return done

    run('-c', build.format('sdist'), folder, cwd=source)
    (archive,) = folder.glob('*.tar.gz')
    with tarfile.open(archive) as opened:
        opened.extraction_filter = getattr(tarfile, 'data_filter', None)  # from 3.11.4 on
        opened.extractall(folder / 'unpacked')
    (unpacked,) = (folder / 'unpacked').iterdir()
    stale = unpacked / 'build/lib/mmseg_cct/gone.py'  # of an earlier build
    stale.parent.mkdir(parents=True)
    stale.touch()
    run('-c', build.format('wheel'), folder, cwd=unpacked)
    (wheel,) = folder.glob('*.whl')
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(folder / 'installed')
    return SimpleNamespace(source=unpacked, wheel=wheel, installed=folder / 'installed')


def files(folder, *suffixes):
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob('*')
        if path.is_file() and path.suffix in suffixes and '__pycache__' not in path.parts
    }


def test_the_wheel_has_code_configs_lists_and_tools(built, project_root):
    package, shipped = project_root / 'mmseg_cct', built.installed / 'mmseg_cct' / '.mim'
    own = {name for name in files(package, '.py') if not name.startswith('.mim')}
    assert own <= files(built.installed / 'mmseg_cct', '.py')
    kinds = ('.cpp', '.jinja')
    assert files(package, *kinds) <= files(built.installed / 'mmseg_cct', *kinds)
    kinds = ('.py', '.txt', '.yml')
    assert files(shipped / 'configs', *kinds) == files(project_root / 'configs', *kinds)
    assert files(shipped / 'tools', '.py') == files(project_root / 'tools', '.py')
    scripts = {'dist_train.sh', 'dist_test.sh', 'slurm_train.sh', 'slurm_test.sh'}
    assert files(shipped / 'tools', '.sh') == scripts
    assert (shipped / 'model-index.yml').is_file()
    assert not [path for path in built.installed.rglob('*') if path.is_symlink()]
    assert not (built.installed / 'mmseg_cct/gone.py').exists()


def test_the_source_archive_is_complete(built, project_root):
    for folder in ('benchmarks', 'configs', 'docs', 'examples', 'tests', 'tools'):
        kinds = ('.py', '.sh', '.md', '.png', '.txt', '.yml')
        assert files(built.source / folder, *kinds) == files(project_root / folder, *kinds)
    for name in ('CHANGELOG.md', 'CITATION.cff', 'LICENSE', 'README.md', 'conftest.py'):
        assert (built.source / name).is_file()


def test_the_model_index_names_configs(project_root):
    index = yaml.safe_load((project_root / 'model-index.yml').read_text())
    models = []
    for metafile in index['Import']:
        models += yaml.safe_load((project_root / metafile).read_text())['Models']
    assert len(models) >= 4
    for model in models:
        assert (project_root / model['Config']).is_file()
        assert Path(model['Config']).stem == model['Name']


def test_the_installed_wheel_trains_in_a_strangers_folder(built, tmp_path):
    """Away from the checkout; no module there is imported, nor does a `matplotlibrc` name code."""
    for name in ('random', 'fnmatch', 'yaml', 'matplotlib', 'mmdet'):
        (tmp_path / f'{name}.py').write_text("open('ran', 'w')")
    (tmp_path / 'matplotlibrc').write_bytes(b'\xff\xfe')
    (tmp_path / 'own.py').write_text(CONFIG)
    env = {**os.environ, 'PYTHONPATH': str(built.installed), 'OMP_NUM_THREADS': '1'}
    env.pop('PYTHONDONTWRITEBYTECODE', None)
    done = subprocess.run(
        [sys.executable, '-m', 'mmseg_cct', 'train', 'own.py'],
        cwd=tmp_path, env=env, text=True, capture_output=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / 'work_dirs/own/iter_2.pth').is_file() and not (tmp_path / 'ran').exists()
    assert (built.installed / 'mmseg_cct/apis/__pycache__').is_dir()  # it was this one
    for line in ('mmcv-lite', 'OneDL', 'draw is False', 'FutureWarning'):
        assert line not in done.stdout + done.stderr
