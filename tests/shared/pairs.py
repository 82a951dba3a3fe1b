"""Draws of a `PairSampler` from sets that only have a length."""

from itertools import islice
from types import SimpleNamespace

from mmseg_cct.datasets import PairSampler
from mmseg_cct.datasets.samplers import endless_sampler


def pair_of_sets(num_labeled=5, num_unlabeled=7):
    unlabeled = None if num_unlabeled is None else range(num_unlabeled)
    return SimpleNamespace(labeled=range(num_labeled), unlabeled=unlabeled)


def draws_of(num, skip=0, **kwargs):
    sampler = PairSampler(kwargs.pop('dataset', pair_of_sets()), **{'seed': 3, **kwargs})
    sampler.skip(skip)
    return list(islice(sampler, num))


def draws_of_ranks(monkeypatch, world_size, draw):
    """What the ranks draw, step by step; then there is one rank again."""
    by_rank = []
    for rank in range(world_size):
        monkeypatch.setattr(endless_sampler, 'get_dist_info', lambda rank=rank: (rank, world_size))
        by_rank.append(draw())
    monkeypatch.setattr(endless_sampler, 'get_dist_info', lambda: (0, 1))
    return list(zip(*by_rank))
