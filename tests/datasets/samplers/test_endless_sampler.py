import pytest
from pairs import draws_of, draws_of_ranks, pair_of_sets

from mmseg_cct.datasets import PairSampler


@pytest.mark.parametrize(('world_size', 'skip'), [(2, 0), (3, 4)])
def test_ranks_share_the_global_stream(monkeypatch, world_size, skip):
    steps = draws_of_ranks(monkeypatch, world_size, lambda: draws_of(10, skip=skip))
    together = [draw for step in steps for draw in step]
    assert together == draws_of(10 * world_size, skip=skip * world_size)


def test_skip_counts_from_the_start():
    sampler = PairSampler(pair_of_sets(), seed=3)
    sampler.skip(7)
    sampler.skip(2)
    assert next(iter(sampler)) == draws_of(3)[2]
