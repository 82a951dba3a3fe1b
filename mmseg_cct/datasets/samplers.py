"""Which images a training draws, and how it augments them: a pure function of the seed."""

import functools
import itertools
from collections.abc import Iterator, Sized
from typing import NamedTuple

import numpy as np
from mmengine.dist import get_dist_info, sync_random_seed
from mmseg.registry import DATA_SAMPLERS
from torch.utils.data import Sampler

from mmseg_cct.errors import UserError

_LABELED, _UNLABELED = 0, 1
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


@functools.lru_cache(maxsize=8)
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
