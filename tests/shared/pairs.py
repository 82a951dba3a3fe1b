"""Draws of a `PairSampler` from sets that only have a length."""

from itertools import islice
from types import SimpleNamespace

from mmseg_cct.datasets import PairSampler


def pair_of_sets(num_labeled=5, num_unlabeled=7):
    unlabeled = None if num_unlabeled is None else range(num_unlabeled)
    return SimpleNamespace(labeled=range(num_labeled), unlabeled=unlabeled)


def draws_of(num, skip=0, **kwargs):
    sampler = PairSampler(kwargs.pop('dataset', pair_of_sets()), **{'seed': 3, **kwargs})
    sampler.skip(skip)
    return list(islice(sampler, num))
