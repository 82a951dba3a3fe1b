import argparse

import pytest

from mmseg_cct.utils.cli import at_least


def test_at_least():
    assert [at_least(2)('2'), at_least(0)('0'), at_least(1)('17')] == [2, 0, 17]


@pytest.mark.parametrize('value', ['1', '-3', '2.5', 'two', ''])
def test_less_or_no_number_is_an_error(value):
    with pytest.raises(argparse.ArgumentTypeError, match=f'^{value}; expected 2 or more$'):
        at_least(2)(value)
