import logging

import pytest
from mmengine.logging import MMLogger

from mmseg_cct.utils.log import only_warnings


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
