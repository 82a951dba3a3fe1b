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
        {**{name: ONEDL[name] for name in ONEDL if name != 'onedl-mmcv'}, BUILD: '2.3.6'},
    ],
)
def test_stacks_that_work_pass(installed, versions):
    installed(versions)
    assert find_problem() is None


@pytest.mark.parametrize(
    ('versions', 'problem'),
    [
        (
            {name: version for name, version in ONEDL.items() if name != 'onedl-mmcv'},
            'needs onedl-mmcv>=2.3.6,<2.4, which is not installed; '
            "run: pip install 'onedl-mmcv>=2.3.6,<2.4'",
        ),
        (
            {**FIRST, 'mmcv': '2.2.0'},
            'needs mmcv>=2.0.0,<2.2.0, but 2.2.0 is installed; '
            "run: pip install 'mmcv>=2.0.0,<2.2.0'",
        ),
        (
            {**{name: FIRST[name] for name in FIRST if name != 'mmcv'}, 'mmcv-full': '1.7.2'},
            'needs mmcv>=2.0.0,<2.2.0, but 1.7.2 is installed; '
            "run: pip uninstall -y mmcv-full && pip install 'mmcv>=2.0.0,<2.2.0'",
        ),
    ],
)
def test_a_distribution_that_does_not_fit_is_named_with_the_command(installed, versions, problem):
    installed(versions)
    assert find_problem() == f'mmseg_cct: {problem}'


def test_both_families_together_are_refused(installed):
    installed({**ONEDL, 'mmpretrain': '2.1.0'})
    problem = find_problem()
    assert 'mmpretrain and onedl-mmcv' in problem
    assert 'pip uninstall -y mmpretrain && pip install --force-reinstall --no-deps' in problem
    assert "'onedl-mmcv>=2.3.6,<2.4'" in problem


def test_two_builds_of_mmcv_are_refused_and_the_one_with_operators_is_kept(installed):
    installed({**ONEDL, BUILD: '2.3.6'})
    problem = find_problem()
    assert 'pip uninstall -y onedl-mmcv && pip install' in problem and f"'{BUILD}'" in problem


def test_what_an_installation_would_overwrite_is_known(installed):
    installed({**ONEDL, 'onedl-mmpretrain': '1.3.6', 'mmdet': '3.3.0'})
    assert distributions_to_overwrite() == []
    installed({**FIRST, BUILD: '2.3.6', 'MMCV_lite': '2.1.0'} | {'mmcv-lite': '2.1.0'})
    expected = ['mmcv', 'mmcv-lite', 'mmengine', 'mmsegmentation', BUILD]
    assert distributions_to_overwrite() == expected


def test_torchvision_operators_that_do_not_load_are_explained(installed):
    installed({**ONEDL, 'torch': '2.13.0+cpu', 'torchvision': '0.28.0'})
    line = explain_import_failure(RuntimeError('operator torchvision::nms does not exist'))
    assert 'torchvision 0.28.0 does not match torch 2.13.0+cpu' in line
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
