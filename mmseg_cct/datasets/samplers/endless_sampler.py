"""Base class of samplers without an end."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sized
from typing import Any

from mmengine.dist import get_dist_info, sync_random_seed
from torch.utils.data import Sampler


class EndlessSampler(Sampler, ABC):
    """An endless global stream of draws, dealt out to the ranks in turn.

    Rank ``r`` of ``w`` takes the positions ``r, r + w, r + 2w, ...``, so the draws of one iteration
    are the same however many processes share them. Subclasses define `draw`, a function of the
    seed and the position alone, and the length of a pass.

    Args:
        dataset: The data set to draw from.
        seed: Seed of the stream, the same on all ranks. `None` draws one and shares it.
    """

    def __init__(self, dataset: Sized, seed: int | None = None) -> None:
        self.dataset: Any = dataset
        self.seed = sync_random_seed() if seed is None else seed
        self.rank, self.world_size = get_dist_info()
        self._num_skipped = 0

    @abstractmethod
    def draw(self, position: int) -> Any:
        """Returns the draw at a position from 0 of the stream that all ranks share."""

    def __iter__(self) -> Iterator[Any]:
        """Yields this rank's draws, every ``world_size``-th one, without end."""
        # No epoch and no state: a resumed run only has to count what it has drawn.
        first = self.rank + self._num_skipped * self.world_size
        yield from map(self.draw, itertools.count(first, self.world_size))

    def skip(self, num_samples: int) -> None:
        """Starts after this many draws (0 or more) of this rank, as a resume needs it."""
        self._num_skipped = num_samples
