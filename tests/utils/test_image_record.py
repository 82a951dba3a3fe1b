import json

import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_record import ImageCounts, record_origin


def test_an_unreadable_image_is_one_line():
    counts = ImageCounts(skipped=2)
    counts.add_unreadable('a.png', ValueError('cut\noff'))
    assert (counts.written, counts.skipped) == (0, 2)
    assert counts.failed == ['a.png: unreadable image (cut off)']
    assert counts.describe('out') == '0 written to out, 2 there already, 1 unreadable'


def test_the_same_origin_may_come_again(tmp_path):
    record = tmp_path / 'out' / 'record.json'
    for _ in range(2):
        record_origin(record, dict(checkpoint='a.pth'), 'labels')
    assert json.loads(record.read_text()) == dict(checkpoint='a.pth')


@pytest.mark.parametrize(
    ('now', 'message'),
    [
        (dict(checkpoint='b.pth'), r'out holds labels made with checkpoint=a\.pth, now it is b'),
        (dict(checkpoint='a.pth', domain='x'), r'made with domain=None, now it is x'),
        ({}, r'made with checkpoint=a\.pth, now it is None; expected the same, or another folder'),
    ],
)
def test_another_origin_is_refused(tmp_path, now, message):
    record = tmp_path / 'out' / 'record.json'
    record_origin(record, dict(checkpoint='a.pth'), 'labels')
    with pytest.raises(UserError, match=message):
        record_origin(record, now, 'labels')
