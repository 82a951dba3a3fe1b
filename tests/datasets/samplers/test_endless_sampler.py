from itertools import islice
from types import SimpleNamespace

import pytest

from mmseg_cct.datasets import PairSampler
from mmseg_cct.datasets.samplers import endless_sampler


def _pair(num_labeled=5, num_unlabeled=7):
    unlabeled = None if num_unlabeled is None else range(num_unlabeled)
    return SimpleNamespace(labeled=range(num_labeled), unlabeled=unlabeled)


def _draws(num, skip=0, **kwargs):
    sampler = PairSampler(kwargs.pop('dataset', _pair()), **{'seed': 3, **kwargs})
    sampler.skip(skip)
    return list(islice(sampler, num))


def test_iterating_again_starts_again():
    sampler = PairSampler(_pair(), seed=1)
    assert list(islice(sampler, 9)) == list(islice(sampler, 9))


@pytest.mark.parametrize('world_size', [2, 3])
@pytest.mark.parametrize('skip', [0, 4])
def test_ranks_share_the_global_stream(monkeypatch, world_size, skip):
    by_rank = []
    for rank in range(world_size):
        monkeypatch.setattr(endless_sampler, 'get_dist_info', lambda rank=rank: (rank, world_size))
        by_rank.append(_draws(10, skip=skip))
    together = [draw for step in zip(*by_rank) for draw in step]
    monkeypatch.setattr(endless_sampler, 'get_dist_info', lambda: (0, 1))
    assert together == _draws(10 * world_size, skip=skip * world_size)


def test_skip_counts_from_the_start():
    sampler = PairSampler(_pair(), seed=3)
    sampler.skip(7)
    sampler.skip(2)
    assert next(iter(sampler)) == _draws(3)[2]


def test_no_seed_draws_one():
    sampler = PairSampler(_pair())
    assert list(islice(sampler, 5)) == _draws(5, seed=sampler.seed)


def test_negative_skip_is_refused():
    with pytest.raises(ValueError, match='num_samples must be 0 or more, got -1'):
        PairSampler(_pair(), seed=0).skip(-1)
