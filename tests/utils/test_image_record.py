import json
import os

import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_record import (
    INPUTS,
    ImageCounts,
    file_stamp,
    forget_changed,
    record_origin,
)


def test_an_unreadable_image_is_one_line():
    counts = ImageCounts(skipped=2)
    counts.add_unreadable('a.png', ValueError('cut\noff'))
    assert (counts.written, counts.skipped) == (0, 2)
    assert counts.failed == ['a.png: cannot be read (cut off); expected a readable image']
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


def test_a_torn_record_is_refused(tmp_path):
    record = tmp_path / 'record.json'
    record.write_text('{"checkpoint"')
    with pytest.raises(UserError, match=r'record\.json: damaged; expected the settings of an'):
        record_origin(record, dict(checkpoint='a.pth'), 'labels')


def test_outputs_of_changed_inputs_go(tmp_path):
    (tmp_path / 'labels' / 'more').mkdir(parents=True)
    names = ('a', 'b', 'more/c', 'd')
    files = {name: tmp_path / 'labels' / f'{name}.png' for name in names}

    def left(inputs, others=()):
        for file in files.values():
            file.touch()
        assert forget_changed(tmp_path, inputs, 'labels') == list(others)
        return [name for name, file in files.items() if file.exists()]

    first = {'a': [1, 2], 'b': [3, 4], 'more/c': None}
    assert left(first) == list(names)  # nothing is known yet
    assert left(first) == list(names)
    assert left({'a': [1, 2], 'b': [3, 5], 'more/c': [0, 0]}) == ['a', 'd']
    # d is new
    assert left({'a': [1, 2], 'd': [7, 7]}, ['b', 'more/c']) == ['a', 'b', 'more/c']
    # what is not asked for stays known
    assert left({'b': [3, 5]}, ['a', 'd', 'more/c']) == list(names)
    for damaged in ('{"a"', '[1]'):
        (tmp_path / INPUTS).write_text(damaged)
        assert left({'b': [3, 5]}) == ['a', 'more/c', 'd']


def test_a_stamp_tells_files_apart(tmp_path):
    file = tmp_path / 'a'
    assert file_stamp(file) is None
    file.write_bytes(b'one')
    first = file_stamp(file)
    assert first == file_stamp(file) and json.loads(json.dumps(first)) == first
    file.write_bytes(b'longer')
    assert file_stamp(file)[0] == 6
    file.write_bytes(b'two')
    os.utime(file, ns=(1, 2))
    assert file_stamp(file) == [3, 2]
