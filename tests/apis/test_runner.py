import logging

import pytest

from mmseg_cct.apis.runner import console_filter


@pytest.mark.parametrize(
    ('line', 'shown'),
    [('Config:\nmodel = 1', False), ('Training on 5 images', True), (ValueError('Config'), True)],
)
def test_the_screen_is_spared_what_is_for_the_file(line, shown):
    record = logging.makeLogRecord(dict(msg=line))
    assert console_filter(record) == shown
