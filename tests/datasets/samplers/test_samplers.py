from itertools import islice
from types import SimpleNamespace

import pytest
from pairs import draws_of, draws_of_ranks, pair_of_sets

from mmseg_cct.datasets import MultiDomainDraw, MultiDomainSampler, PairDraw, PairSampler
from mmseg_cct.datasets.samplers.multi_domain_sampler import domain_cycle
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


BATCH = 2


def make(**kwargs):
    domains = dict(a=pair_of_sets(5, 7), b=pair_of_sets(4, 3), c=pair_of_sets(6, None))
    settings = {'batch_size': BATCH, 'seed': 3, **kwargs}
    return MultiDomainSampler(SimpleNamespace(domains=domains), **settings)


def draws(number, skip=0, **kwargs):
    sampler = make(**kwargs)
    sampler.skip(skip)
    return list(islice(sampler, number))


def test_draws_of_domains_never_change():
    # Golden: a change here silently gives every published seed another meaning.
    assert draws(3, seed=0, batch_size=1) == [
        MultiDomainDraw('a', PairDraw(3, 3, 2172014667, 2292755023)),
        MultiDomainDraw('b', PairDraw(0, 0, 563916050, 3393646296)),
        MultiDomainDraw('c', PairDraw(4, None, 2979332026, 2837740225)),
    ]


@pytest.mark.parametrize(
    ('weights', 'cycle'),
    [
        ({}, 'abc'),
        (dict(a=2), 'abca'),
        (dict(b=3), 'babcb'),
        (dict(c=4, a=2), 'cacbcac'),
    ],
)
def test_weights_are_batches_in_a_cycle(weights, cycle):
    assert ''.join(domain_cycle('abc', weights)) == cycle
    one_batch = draws(3 * len(cycle), weights=weights, batch_size=1)
    assert ''.join(draw.domain for draw in one_batch) == cycle * 3
    assert len(make()) == 7 + 3 + 6


def test_each_domain_is_a_pair_sampler_that_waits_for_its_turn():
    for weights in (None, dict(b=2)):
        sampler = make(weights=weights)
        taken = {name: [] for name in 'abc'}
        for draw in islice(sampler, 60):
            taken[draw.domain].append(draw.pair)
        seeds = [pair.labeled_seed for pairs in taken.values() for pair in pairs]
        assert len(set(seeds)) == 60  # each domain has streams of its own
        for name, pairs in taken.items():
            assert pairs == list(islice(sampler.samplers[name], len(pairs)))
        passes = [pair.labeled for pair in taken['a']][:5]
        assert sorted(passes) == list(range(5))


@pytest.mark.parametrize(('world_size', 'skip'), [(2, 0), (3, 8)])
def test_ranks_are_on_one_domain_and_share_its_stream(monkeypatch, world_size, skip):
    steps = draws_of_ranks(monkeypatch, world_size, lambda: draws(24, skip=skip, weights=dict(b=2)))
    assert all(len({draw.domain for draw in step}) == 1 for step in steps)
    alone = draws(world_size * (24 + skip), batch_size=world_size * BATCH, weights=dict(b=2))
    for name in 'abc':
        # the same pairs of a domain in the same order as one process draws with the whole batch
        together = [draw.pair for step in steps for draw in step if draw.domain == name]
        expected = [draw.pair for draw in alone if draw.domain == name]
        assert together == expected[len(expected) - len(together) :]
