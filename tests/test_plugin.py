import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import pytest
from mmengine.config.utils import MODULE2PACKAGE
from mmengine.runner.checkpoint import CheckpointLoader

from mmseg_cct import plugin


def test_setup_twice_is_setup_once(monkeypatch):
    schemes = dict(CheckpointLoader._schemes)
    packages = dict(MODULE2PACKAGE)
    plugin.setup()
    assert (CheckpointLoader._schemes, MODULE2PACKAGE) == (schemes, packages)


def test_the_original_distribution_keeps_its_name(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setitem(MODULE2PACKAGE, 'mmseg', 'mmsegmentation')
    monkeypatch.setattr(plugin.metadata, 'version', missing)
    plugin.setup()
    assert MODULE2PACKAGE['mmseg'] == 'mmsegmentation'


@pytest.mark.slow
def test_importing_the_package_changes_nothing():
    code = (
        'import sys, warnings; before = list(warnings.filters)\n'
        'import mmseg_cct; print(mmseg_cct.__version__)\n'
        'assert warnings.filters == before\n'
        'own = {name for name in sys.modules if name.startswith("mm")}\n'
        'assert own == {"mmseg_cct", "mmseg_cct.version"}, own\n'
        'assert not {"torch", "numpy"} & set(sys.modules)\n'
    )
    done = subprocess.run([sys.executable, '-c', code], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
