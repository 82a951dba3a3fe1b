"""Draws pairs from several domains in turn."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mmseg.registry import DATA_SAMPLERS

from mmseg_cct.errors import UserError

from .endless_sampler import EndlessSampler
from .pair_sampler import PairDraw, PairSampler
from .streams import stream_seed

_DOMAIN = 2  # number of the stream that seeds the domains' `PairSampler`s


class MultiDomainDraw(NamedTuple):
    """One draw of a pair from the set of one of several domains."""

    domain: str
    pair: PairDraw


@DATA_SAMPLERS.register_module()
class MultiDomainSampler(EndlessSampler):
    """Endless pairs for `MultiDomainDataset`: every batch is of one domain, and domains alternate.

    The domain of a batch depends only on its number, so all ranks are on the same domain, with any
    number of workers and after a resume. Each domain has its own `PairSampler`, whose streams stand
    still while other domains have their turn.

    Args:
        dataset: The `MultiDomainDataset` to draw from.
        batch_size: Pairs in a batch on one rank, the dataloader's `batch_size`.
        weights: Batches of each domain in a cycle, by name; 1 for a domain that is not named.
        shuffle: Whether every pass over a set is a fresh permutation; otherwise it is in order.
        seed: Seed of all streams, the same on all ranks. `None` draws one and shares it.

    Raises:
        UserError: If a weight is for an unknown domain or not a positive whole number.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        weights: Mapping[str, int] | None = None,
        shuffle: bool = True,
        seed: int | None = None,
    ) -> None:
        super().__init__(dataset, seed)
        self.batch_size = batch_size
        self.cycle = domain_cycle(tuple(dataset.domains), weights or {})
        self.samplers = {
            name: PairSampler(part, shuffle, stream_seed(self.seed, _DOMAIN, number))
            for number, (name, part) in enumerate(dataset.domains.items())
        }

    def __len__(self) -> int:
        """Returns the draws of all ranks in one pass over the sets of all domains."""
        return sum(map(len, self.samplers.values()))

    def draw(self, position: int) -> MultiDomainDraw:
        """Returns the pair at a position from 0 of the stream that all ranks share."""
        # A turn is a batch of all ranks, a cycle the turns of all domains.
        pairs_per_turn = self.batch_size * self.world_size
        turn, offset = divmod(position, pairs_per_turn)
        cycles, turn_of_cycle = divmod(turn, len(self.cycle))
        domain = self.cycle[turn_of_cycle]
        # The domain's own stream stood still in the turns of the others.
        turns_before = cycles * self.cycle.count(domain) + self.cycle[:turn_of_cycle].count(domain)
        pair = self.samplers[domain].draw(turns_before * pairs_per_turn + offset)
        return MultiDomainDraw(domain, pair)


def domain_cycle(domains: Sequence[str], weights: Mapping[str, int]) -> tuple[str, ...]:
    """Orders the batches of a cycle, with each domain's spread evenly over it.

    The k-th of n batches of a domain, from 0, is due at the share (2k + 1)/2n of the cycle: two
    batches of a and one of b give a, b, a. Where two are due at once, the domain named first is.
    """
    key = 'train_dataloader.sampler.weights'
    for name, weight in weights.items():
        if name not in domains:
            raise UserError(key, f'no domain {name!r}', f'one of {", ".join(domains)}')
        if not isinstance(weight, int) or weight < 1:
            raise UserError(f'{key}.{name}={weight}', '', '1, 2, 3, ... batches in a cycle')
    due_times = []
    for rank, name in enumerate(domains):
        num_batches = weights.get(name, 1)
        due_times += [((2 * k + 1) / (2 * num_batches), rank) for k in range(num_batches)]
    return tuple(domains[rank] for _, rank in sorted(due_times))
