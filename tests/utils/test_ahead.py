import threading

import pytest

from mmseg_cct.utils.ahead import ahead


def test_results_come_in_order_and_a_few_items_are_taken_ahead():
    taken, main = [], threading.get_ident()

    def items():
        for item in range(20):
            assert threading.get_ident() == main
            taken.append(item)
            yield item

    results = ahead(lambda item: (item, threading.get_ident() != main), items())
    assert next(results) == (0, True)
    assert 1 < len(taken) < 10
    assert list(results) == [(item, True) for item in range(1, 20)]


def test_an_error_is_raised_in_its_turn_and_what_was_begun_is_finished():
    done = []

    def work(item):
        if item == 1:
            raise ValueError('second')
        done.append(item)
        return item

    results = ahead(work, range(3))
    assert next(results) == 0
    with pytest.raises(ValueError, match='second'):
        next(results)
    assert done == [0, 2]
