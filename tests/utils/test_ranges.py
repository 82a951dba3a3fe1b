"""Ranges beside the arguments: a constructor rejects other values, a subclass keeps them."""

import math

import pytest

from mmseg_cct.engine.hooks import DurableCheckpointHook
from mmseg_cct.engine.metrics import ClassIoUMetric, MultiDomainIoUMetric
from mmseg_cct.errors import UserError
from mmseg_cct.utils.ranges import at_least, in_unit, number, one_of, optional, pair, ranges


@pytest.mark.parametrize(
    ('limit', 'inside', 'outside'),
    [
        (at_least(2), [2, 3], [1, 2.0]),
        (optional(at_least(1)), [1, None], [0]),
        (one_of(['a', 'b']), ['a'], ['c', None]),
        (number(0), [0, 9.5], [-1, math.nan]),
        (in_unit, [0, 1], [-0.1, 1.1]),
        (pair(in_unit), [(0.1, 1), [1, 1]], [(0.5,), (0, 2)]),
    ],
)
def test_what_is_in_a_range(limit, inside, outside):
    assert [limit.allows(value) for value in inside] == [True] * len(inside)
    assert [limit.allows(value) for value in outside] == [False] * len(outside)


class Parent:
    @ranges(number=at_least(2), share=in_unit, kind=one_of('ab'))
    def __init__(self, number=2, share=0.5, kind='a'):
        self.number = number


class Child(Parent):
    @ranges(number=at_least(5))
    def __init__(self, number=5, **kwargs):
        super().__init__(number, **kwargs)


def test_all_mistakes_are_listed_at_once_and_a_subclass_keeps_the_ranges():
    assert Parent(3, kind='b').number == 3
    with pytest.raises(UserError) as error:
        Child(9, share=2, kind='c')
    assert [p.key for p in error.value.problems] == ['Child.share=2', "Child.kind='c'"]


@pytest.mark.parametrize('component', [DurableCheckpointHook, ClassIoUMetric, MultiDomainIoUMetric])
def test_what_a_library_would_swallow_is_an_error(component):
    with pytest.raises(UserError) as error:
        component(typo=1)
    assert error.value.problems[0].key == f'{component.__name__}.typo'
