import pytest
from pairs import draws_of, pair_of_sets

from mmseg_cct.datasets import PairDraw
from mmseg_cct.datasets.samplers.streams import stream_index


def test_draws_never_change():
    # Golden: a change here silently gives every published seed another meaning.
    assert draws_of(3, seed=0) == [
        PairDraw(0, 3, 1246905493, 3952790413),
        PairDraw(4, 6, 1812439554, 3023734987),
        PairDraw(3, 2, 418312378, 3853099827),
    ]
    assert draws_of(20) == draws_of(20)
    assert draws_of(20, seed=4) != draws_of(20)


@pytest.mark.parametrize('num_unlabeled', [None, 1, 100])
def test_labeled_stream_does_not_depend_on_the_unlabeled_set(num_unlabeled):
    expected = [(draw.labeled, draw.labeled_seed) for draw in draws_of(30)]
    draws = draws_of(30, dataset=pair_of_sets(num_unlabeled=num_unlabeled))
    assert [(draw.labeled, draw.labeled_seed) for draw in draws] == expected
    assert (draws[0].unlabeled is None) == (num_unlabeled is None)


def test_every_pass_is_a_fresh_permutation():
    for stream, size, different in ((0, 5, 6), (1, 7, 10)):
        drawn = [stream_index(size, 3, stream, position) for position in range(10 * size)]
        passes = [tuple(drawn[start : start + size]) for start in range(0, 10 * size, size)]
        assert all(sorted(one) == list(range(size)) for one in passes)
        assert len(set(passes)) >= different
