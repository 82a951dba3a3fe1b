from itertools import islice

import pytest
from pairs import draws_of, pair_of_sets

from mmseg_cct.datasets import PairSampler
from mmseg_cct.datasets.samplers import endless_sampler


def test_iterating_again_starts_again():
    sampler = PairSampler(pair_of_sets(), seed=1)
    assert len(sampler) == 7
    first = list(islice(sampler, 9))
    assert list(islice(sampler, 9)) == first


@pytest.mark.parametrize(('world_size', 'skip'), [(2, 0), (3, 4)])
def test_ranks_share_the_global_stream(monkeypatch, world_size, skip):
    by_rank = []
    for rank in range(world_size):
        monkeypatch.setattr(endless_sampler, 'get_dist_info', lambda rank=rank: (rank, world_size))
        by_rank.append(draws_of(10, skip=skip))
    together = [draw for step in zip(*by_rank) for draw in step]
    monkeypatch.setattr(endless_sampler, 'get_dist_info', lambda: (0, 1))
    assert together == draws_of(10 * world_size, skip=skip * world_size)


def test_skip_counts_from_the_start():
    sampler = PairSampler(pair_of_sets(), seed=3)
    sampler.skip(7)
    sampler.skip(2)
    assert next(iter(sampler)) == draws_of(3)[2]


def test_no_seed_draws_one():
    sampler = PairSampler(pair_of_sets())
    assert list(islice(sampler, 5)) == draws_of(5, seed=sampler.seed)
