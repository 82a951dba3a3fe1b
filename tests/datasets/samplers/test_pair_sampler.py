import pytest
from pairs import draws_of, pair_of_sets

from mmseg_cct.datasets import PairDraw, PairSampler
from mmseg_cct.errors import UserError


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


def test_another_dataset_is_refused():
    with pytest.raises(UserError, match='PairSampler draws from a SemiSegDataset, got list'):
        PairSampler([1, 2, 3])
