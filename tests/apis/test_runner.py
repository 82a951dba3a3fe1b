import logging

import pytest

from mmseg_cct.apis.runner import console_filter


@pytest.mark.parametrize(
    ('message', 'is_shown'), [('Config:\n' + 30 * 'a = 1\n', False), (ValueError('Config'), True)]
)
def test_the_terminal_leaves_long_messages_to_the_file(message, is_shown):
    assert console_filter(logging.makeLogRecord(dict(msg=message))) == is_shown
