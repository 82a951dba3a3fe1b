"""Which images a training draws, and how it augments them: a pure function of the seed."""

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import NamedTuple

import numpy as np
from mmengine.dist import get_dist_info, sync_random_seed
from mmseg.registry import DATA_SAMPLERS
from torch.utils.data import Sampler

from mmseg_cct.errors import UserError

_LABELED, _UNLABELED, _DOMAIN = 0, 1, 2
_PERMUTATION, _AUGMENTATION = 0, 1


class PairDraw(NamedTuple):
    """One draw of a pair: two images and the seeds of their augmentation.

    Attributes:
        labeled: Index into the labelled set.
        unlabeled: Index into the unlabelled set, or `None` where there is none.
        labeled_seed: Seed of the labelled image's augmentation.
        unlabeled_seed: Seed of the unlabelled image's augmentation.
    """

    labeled: int
    unlabeled: int | None
    labeled_seed: int
    unlabeled_seed: int


class DomainDraw(NamedTuple):
    """One draw of a pair from one of several domains.

    Attributes:
        domain: Name of the domain.
        pair: The draw from its set.
    """

    domain: str
    pair: PairDraw


# Labelled and unlabelled streams of a few domains: a permutation of each is in use at a time.
@functools.lru_cache(maxsize=32)
def _permutation(size: int, seed: int, stream: int, epoch: int) -> np.ndarray:
    # RandomState over SeedSequence: NumPy promises that neither changes between versions, so a
    # published seed keeps its meaning.
    sequence = np.random.SeedSequence(seed, spawn_key=(stream, _PERMUTATION, epoch))
    return np.random.RandomState(np.random.MT19937(sequence)).permutation(size)


def stream_index(size: int, seed: int, stream: int, position: int, shuffle: bool = True) -> int:
    """Gives the image at one position of an endless chain of passes over a set.

    Args:
        size: Number of images in the set.
        seed: Seed of the training.
        stream: Number of the stream; streams are independent of each other.
        position: Position in the stream, from 0.
        shuffle: Whether every pass is a fresh permutation; else every pass is in order.

    Returns:
        Index into the set.
    """
    epoch, offset = divmod(position, size)
    return int(_permutation(size, seed, stream, epoch)[offset]) if shuffle else offset


def stream_seed(seed: int, stream: int, position: int) -> int:
    """Gives the seed of the augmentation at one position of a stream.

    Args:
        seed: Seed of the training.
        stream: Number of the stream.
        position: Position in the stream, from 0.

    Returns:
        A seed in [0, 2³²).
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(stream, _AUGMENTATION, position))
    return int(sequence.generate_state(1)[0])


@DATA_SAMPLERS.register_module()
class PairSampler(Sampler):
    """Endless pairs of a labelled and an unlabelled image for `SemiSegDataset`.

    Two streams run side by side, each an endless chain of fresh permutations of its set. The draw
    at a position depends on the seed and the position alone, so the labelled stream is the same
    with and without an unlabelled set: a supervised baseline trains on the same labelled batches.
    Rank ``r`` of ``w`` takes the positions ``r, r + w, r + 2w, ...``, so the pairs of one iteration
    are the same however many processes share them.

    Args:
        dataset: The `SemiSegDataset` to draw from.
        shuffle: Whether every pass over a set is a fresh permutation; else every pass is in order.
        seed: Seed of both streams, the same on all ranks. `None` draws one and shares it.

    Raises:
        UserError: If the dataset is not a `SemiSegDataset`.
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int | None = None) -> None:
        if not (hasattr(dataset, 'labeled') and hasattr(dataset, 'unlabeled')):
            raise UserError(
                f'train_dataloader: PairSampler draws from a SemiSegDataset, got '
                f'{type(dataset).__name__}'
            )
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = sync_random_seed() if seed is None else seed
        self.rank, self.world_size = get_dist_info()
        self._num_skipped = 0

    def draw(self, position: int) -> PairDraw:
        """Gives the draw at one position of the global stream, which all ranks share.

        Args:
            position: Position in the stream, from 0.

        Returns:
            The draw.
        """
        labeled, unlabeled = self.dataset.labeled, self.dataset.unlabeled
        return PairDraw(
            labeled=stream_index(len(labeled), self.seed, _LABELED, position, self.shuffle),
            unlabeled=None
            if unlabeled is None
            else stream_index(len(unlabeled), self.seed, _UNLABELED, position, self.shuffle),
            labeled_seed=stream_seed(self.seed, _LABELED, position),
            unlabeled_seed=stream_seed(self.seed, _UNLABELED, position),
        )

    def __iter__(self) -> Iterator[PairDraw]:
        """Yields this rank's draws without end.

        Yields:
            The draws at every ``world_size``-th position.
        """
        first = self.rank + self._num_skipped * self.world_size
        yield from map(self.draw, itertools.count(first, self.world_size))

    def skip(self, num_samples: int) -> None:
        """Moves the start of the stream, as a resumed training needs it.

        Args:
            num_samples: Draws of this rank to leave out, counted from the start of the stream.

        Raises:
            ValueError: If the number is negative.
        """
        if num_samples < 0:
            raise ValueError(f'num_samples must be 0 or more, got {num_samples}')
        self._num_skipped = num_samples

    def __len__(self) -> int:
        """Gives the length of one pass over the dataset.

        Returns:
            Number of draws of all ranks together.
        """
        return len(self.dataset)

    def set_epoch(self, epoch: int) -> None:
        """Does nothing: an endless stream has no epochs; mmengine calls it on every sampler.

        Args:
            epoch: Ignored.
        """


@DATA_SAMPLERS.register_module()
class DomainSampler(Sampler):
    """Endless pairs for `MultiDomainDataset`: every batch is of one domain, and domains alternate.

    The domain of a batch is a function of its number alone, so all ranks are on the same domain,
    at any number of workers and after a resume. Each domain has the two streams of a `PairSampler`
    of its own, which stand still while other domains have their turn.

    Args:
        dataset: The `MultiDomainDataset` to draw from.
        batch_size: Pairs of a batch, the dataloader's `batch_size`.
        weights: Batches of each domain in a cycle, by name; 1 where a domain is not named.
        shuffle: Whether every pass over a set is a fresh permutation; else every pass is in order.
        seed: Seed of all streams, the same on all ranks. `None` draws one and shares it.

    Raises:
        UserError: If the dataset is no `MultiDomainDataset`, or a weight is of no domain or not a
            positive whole number.
    """

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        weights: Mapping[str, int] | None = None,
        shuffle: bool = True,
        seed: int | None = None,
    ) -> None:
        if not hasattr(dataset, 'domains'):
            raise UserError(
                f'train_dataloader: DomainSampler draws from a MultiDomainDataset, got '
                f'{type(dataset).__name__}'
            )
        self.dataset = dataset
        self.batch_size = batch_size
        self.seed = sync_random_seed() if seed is None else seed
        self.cycle = domain_cycle(tuple(dataset.domains), weights or {})
        self.samplers = {
            name: PairSampler(part, shuffle, stream_seed(self.seed, _DOMAIN, number))
            for number, (name, part) in enumerate(dataset.domains.items())
        }
        self.rank, self.world_size = get_dist_info()
        self._num_skipped = 0

    def draw(self, number: int) -> DomainDraw:
        """Gives one of this rank's draws.

        Args:
            number: Number of the draw on this rank, from 0.

        Returns:
            The draw.
        """
        batch, place = divmod(number, self.batch_size)
        cycles, turn = divmod(batch, len(self.cycle))
        domain = self.cycle[turn]
        batches_before = cycles * self.cycle.count(domain) + self.cycle[:turn].count(domain)
        position = (batches_before * self.batch_size + place) * self.world_size + self.rank
        return DomainDraw(domain, self.samplers[domain].draw(position))

    def __iter__(self) -> Iterator[DomainDraw]:
        """Yields this rank's draws without end.

        Yields:
            The draws, `batch_size` of a domain at a time.
        """
        yield from map(self.draw, itertools.count(self._num_skipped))

    def skip(self, num_samples: int) -> None:
        """Moves the start of the stream, as a resumed training needs it.

        Args:
            num_samples: Draws of this rank to leave out, counted from the start of the stream.

        Raises:
            ValueError: If the number is negative.
        """
        if num_samples < 0:
            raise ValueError(f'num_samples must be 0 or more, got {num_samples}')
        self._num_skipped = num_samples

    def __len__(self) -> int:
        """Gives the length of one pass over all domains.

        Returns:
            Number of draws of all ranks together.
        """
        return len(self.dataset)

    def set_epoch(self, epoch: int) -> None:
        """Does nothing: an endless stream has no epochs; mmengine calls it on every sampler.

        Args:
            epoch: Ignored.
        """


def domain_cycle(domains: Sequence[str], weights: Mapping[str, int]) -> tuple[str, ...]:
    """Orders the batches of a cycle, each domain's spread evenly over it.

    Args:
        domains: Names of the domains.
        weights: Batches of a domain in a cycle, by name; 1 where a domain is not named.

    Returns:
        The domain of each batch of the cycle.

    Raises:
        UserError: If a weight is of no domain or not a positive whole number.
    """
    for name, weight in weights.items():
        if name not in domains:
            raise UserError(
                f'train_dataloader.sampler.weights: no domain {name!r}; expected one of '
                f'{", ".join(domains)}'
            )
        if not isinstance(weight, int) or weight < 1:
            raise UserError(
                f'train_dataloader.sampler.weights.{name}={weight}: expected 1, 2, 3, ... batches '
                'in a cycle'
            )
    # The k-th of n batches is due at (2k + 1)/2n of the cycle; ties go by the domains' order.
    due = sorted(
        ((2 * k + 1) / (2 * count), number, name)
        for number, name in enumerate(domains)
        for count in (weights.get(name, 1),)
        for k in range(count)
    )
    return tuple(name for _, _, name in due)
