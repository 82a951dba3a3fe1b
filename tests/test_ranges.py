import math

import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.utils.ranges import (
    at_least,
    finite,
    in_unit,
    number,
    one_of,
    open_unit,
    optional,
    pair,
    positive,
    positive_unit,
    ranges,
    unit_below_one,
)


@pytest.mark.parametrize(
    ('limit', 'inside', 'outside'),
    [
        (at_least(2), [2, 3], [1, 2.0, True, '2', None]),
        (optional(at_least(1)), [1, None], [0]),
        (one_of(['a', 'b']), ['a'], ['c', None]),
        (finite, [-1, 0.5], [math.nan, math.inf, True, '1']),
        (number(0, 0.5), [0, 0.5], [-0.1, 0.6]),
        (in_unit, [0, 1], [-0.1, 1.1, None]),
        (positive, [1e-9], [0, math.nan]),
        (positive_unit, [1, 0.1], [0, 1.1]),
        (unit_below_one, [0, 0.9], [1]),
        (open_unit, [0.5], [0, 1]),
        (pair(positive_unit), [(0.1, 1), [1, 1]], [(0.9, 0.6), (0.5,), (0, 1), 0.5]),
    ],
)
def test_what_is_in_a_range(limit, inside, outside):
    assert [limit.allows(value) for value in inside] == [True] * len(inside)
    assert [limit.allows(value) for value in outside] == [False] * len(outside)


def test_a_constructor_names_every_argument_out_of_range():
    class Part:
        @ranges(count=at_least(1), share=in_unit, name=one_of('ab'))
        def __init__(self, count, share=0.5, name='a'):
            self.values = count, share, name

    assert Part(2, name='b').values == (2, 0.5, 'b')
    with pytest.raises(UserError) as caught:
        Part(0, share=2)
    assert [problem.key for problem in caught.value.problems] == ['Part.count=0', 'Part.share=2']
