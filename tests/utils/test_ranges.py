"""Ranges beside the arguments: a constructor rejects other values, a subclass keeps them."""

import math

import pytest

from mmseg_cct.engine.hooks import DurableCheckpointHook
from mmseg_cct.engine.metrics import ClassIoUMetric, MultiDomainIoUMetric
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
    require_arguments_of,
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


class Own:
    @ranges(number=at_least(2), share=optional(in_unit), limits=pair(in_unit), kind=one_of('ab'))
    def __init__(self, number=2, share=None, limits=(0, 1), kind='a'):
        self.number = number


class Child(Own):
    @ranges(number=at_least(5))
    def __init__(self, number=5, **kwargs):
        super().__init__(number, **kwargs)


def test_all_are_told_at_once_and_a_subclass_keeps_them():
    assert Own(3, share=1, limits=(0, 1), kind='b').number == 3
    with pytest.raises(UserError) as error:
        Child(9, share=2, limits=(1, 0), kind='c')
    assert [problem.key for problem in error.value.problems] == [
        'Child.share=2', 'Child.limits=(1, 0)', "Child.kind='c'",
    ]  # fmt: skip
    with pytest.raises(UserError, match=r'^Own\.number=True'):
        Own(True)


class Parent:
    def __init__(self, first, *args, second=2, **kwargs):
        pass


@pytest.mark.parametrize('name', ['secnd', 'kwargs'])
def test_arguments_of_the_parent_pass_and_others_are_an_error(name):
    require_arguments_of(Parent, ['first', 'second'], 'Child')
    with pytest.raises(UserError, match=rf'^Child\.{name}: no such argument; '):
        require_arguments_of(Parent, [name], 'Child')


@pytest.mark.parametrize('component', [DurableCheckpointHook, ClassIoUMetric, MultiDomainIoUMetric])
def test_what_a_library_would_swallow_is_an_error(component):
    with pytest.raises(UserError) as error:
        component(typo=1)
    assert error.value.problems[0].key == f'{component.__name__}.typo'
