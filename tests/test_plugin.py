import subprocess
import sys

import pytest
from mmengine.config.utils import MODULE2PACKAGE
from mmengine.runner.checkpoint import CheckpointLoader

from mmseg_cct import plugin


def test_setup_twice_is_setup_once():
    schemes = dict(CheckpointLoader._schemes)
    packages = dict(MODULE2PACKAGE)
    plugin.setup()
    assert (CheckpointLoader._schemes, MODULE2PACKAGE) == (schemes, packages)


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
