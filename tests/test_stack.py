import subprocess
import sys
from importlib import metadata
from types import SimpleNamespace

import pytest

from mmseg_cct.stack import distributions_to_overwrite, explain_import_failure, find_problem

ONEDL = {
    'torch': '2.15.0',
    'onedl-mmengine': '0.10.12',
    'onedl-mmcv': '2.3.6',
    'onedl-mmsegmentation': '1.4.2',
}
BUILD = 'onedl-mmcv-cu128-torch2-8'  # mmcv with compiled operators
FIRST = dict(torch='2.1.2', numpy='1.26.4', mmengine='0.10.7', mmcv='2.1.0', mmsegmentation='1.2.2')


def without(versions, name, **others):
    return {key: version for key, version in versions.items() if key != name} | others


@pytest.fixture
def installed(monkeypatch):
    """Replaces the installed distributions; the result is called with versions."""

    def install(versions):
        def version(name):
            if name not in versions:
                raise metadata.PackageNotFoundError(name)
            return versions[name]

        monkeypatch.setattr(metadata, 'version', version)
        names = [SimpleNamespace(name=name) for name in versions]
        monkeypatch.setattr(metadata, 'distributions', lambda: names)

    return install


@pytest.mark.parametrize(
    'versions',
    [
        {**ONEDL, 'torch': '2.13.0+cpu', 'numpy': '2.4.6', 'onedl-mmpretrain': '1.3.6'},
        {**FIRST, 'torch': '2.1.0+cu121', 'mmpretrain': '1.2.0'},
        without(ONEDL, 'onedl-mmcv', **{BUILD: '2.3.6'}),
    ],
)
def test_stacks_that_work_pass(installed, versions):
    installed(versions)
    assert find_problem() is None


@pytest.mark.parametrize(
    ('versions', 'command'),
    [
        (without(ONEDL, 'onedl-mmcv'), "pip install 'onedl-mmcv>=2.3.6,<2.4'"),
        ({**FIRST, 'mmcv': '2.2.0'}, "pip install 'mmcv>=2.0.0,<2.2.0'"),
        (
            without(FIRST, 'mmcv', **{'mmcv-full': '1.7.2'}),
            "pip uninstall -y mmcv-full && pip install 'mmcv>=2.0.0,<2.2.0'",
        ),
    ],
)
def test_a_distribution_that_does_not_fit_is_named_with_the_command(installed, versions, command):
    installed(versions)
    assert find_problem().endswith(f'; run: {command}')


@pytest.mark.parametrize(
    ('other', 'removed'),
    [({'mmpretrain': '2.1.0'}, 'mmpretrain'), ({BUILD: '2.3.6'}, 'onedl-mmcv')],
)
def test_two_families_or_builds_are_refused_and_the_better_one_is_kept(installed, other, removed):
    installed({**ONEDL, **other})
    problem = find_problem()
    assert f'pip uninstall -y {removed} && pip install --force-reinstall --no-deps' in problem
    kept = f"'{BUILD}'" if BUILD in other else "'onedl-mmcv>=2.3.6,<2.4'"
    assert kept in problem


def test_what_an_installation_would_overwrite_is_known(installed):
    installed({**ONEDL, 'onedl-mmpretrain': '1.3.6', 'mmdet': '3.3.0'})
    assert distributions_to_overwrite() == []
    installed({**FIRST, BUILD: '2.3.6', 'MMCV_lite': '2.1.0'} | {'mmcv-lite': '2.1.0'})
    expected = ['mmcv', 'mmcv-lite', 'mmengine', 'mmsegmentation', BUILD]
    assert distributions_to_overwrite() == expected


def test_torchvision_operators_that_do_not_load_are_explained(installed):
    installed({**ONEDL, 'torch': '2.13.0+cpu', 'torchvision': '0.28.0'})
    line = explain_import_failure(RuntimeError('operator torchvision::nms does not exist'))
    assert line.endswith('torchvision --index-url https://download.pytorch.org/whl/cpu')
    line = explain_import_failure(ModuleNotFoundError("No module named 'mmcv._ext'"))
    assert 'mmcv was built without its operators' in line
    assert explain_import_failure(RuntimeError('something else')) is None


@pytest.mark.slow
def test_a_tool_says_it_in_one_line(project_root):
    code = (
        'import runpy, sys; from importlib import metadata; real = metadata.version\n'
        "metadata.version = lambda name: '1.13.1' if name == 'torch' else real(name)\n"
        f"sys.argv = ['train.py', 'demo/cct_shapes']; runpy.run_path({str(project_root)!r} + "
        "'/tools/train.py', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith('error: mmseg_cct: needs torch')
