import logging
import subprocess
import sys
import warnings

import pytest
from mmengine.logging import MMLogger

from mmseg_cct.utils.log import only_warnings, silence_misleading_lines


def test_lines_below_a_warning_are_silent_and_what_was_set_before_comes_back(caplog):
    before, logger = logging.root.manager.disable, logging.getLogger('parts')
    own = MMLogger.get_current_instance()
    assert own.isEnabledFor(logging.INFO)
    with caplog.at_level(logging.INFO), pytest.raises(ZeroDivisionError), only_warnings():
        logger.info('built')
        logger.warning('slow')
        assert not own.isEnabledFor(logging.INFO)
        with only_warnings():
            pass
        logger.info('built again')
        raise ZeroDivisionError
    assert [record.message for record in caplog.records] == ['slow']
    assert logging.root.manager.disable == before and own.isEnabledFor(logging.INFO)


def test_only_the_named_warnings_are_silent():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter('always')
        silence_misleading_lines()
        warnings.warn('The draw is False, it means', stacklevel=1)
        warnings.warn('The draw is True', stacklevel=1)
        warnings.warn('`torch.jit.script` is deprecated', FutureWarning, stacklevel=1)
    expected = ['The draw is True', '`torch.jit.script` is deprecated']
    assert [str(warning.message) for warning in seen] == expected


@pytest.mark.slow
def test_an_import_and_a_forward_derivative_say_nothing():
    code = (
        'import mmseg_cct.plugin, torch\n'
        'from mmengine.visualization import Visualizer\n'
        'from mmseg.engine.hooks import SegVisualizationHook\n'
        'Visualizer.get_instance("visualizer")\n'
        'SegVisualizationHook()\n'
        'torch.func.jvp(lambda x: x.trace(), (torch.eye(3),), (torch.eye(3),))\n'
    )
    done = subprocess.run(
        [sys.executable, '-W', 'default', '-c', code], text=True, capture_output=True, timeout=240
    )
    said = (done.stdout + done.stderr).splitlines()
    wanted = ('OneDL', 'mmcv-lite', 'draw is', 'torch.jit.script')
    assert done.returncode == 0, done.stderr
    assert not [line for line in said if any(word in line for word in wanted)]
