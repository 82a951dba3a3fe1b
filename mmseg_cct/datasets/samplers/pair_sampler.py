"""Draws pairs of a labelled and an unlabelled image."""

from collections.abc import Sequence, Sized
from typing import Any, NamedTuple

from mmseg.registry import DATA_SAMPLERS

from mmseg_cct.errors import UserError

from .endless_sampler import EndlessSampler
from .streams import stream_index, stream_seed

_LABELED, _UNLABELED = 0, 1  # numbers of the streams


class PairDraw(NamedTuple):
    """One draw: indices of images in their sets, and seeds in [0, 2³²) of their augmentation."""

    labeled: int
    unlabeled: int | None  # None where there is none
    labeled_seed: int
    unlabeled_seed: int


def require_draws(draws: Sequence[Any], draw_type: type, sampler: str, dataset: str) -> None:
    """Rejects the indices of another sampler: every pass over the images would augment alike."""
    for draw in draws:
        if not isinstance(draw, draw_type):
            expected = f'sampler=dict(type={sampler!r}), whose draws {dataset} takes'
            raise UserError('train_dataloader.sampler', f'gave {draw!r} as index', expected)


@DATA_SAMPLERS.register_module()
class PairSampler(EndlessSampler):
    """Endless pairs of a labelled and an unlabelled image for `SemiSegDataset`.

    Two streams run side by side, each an endless chain of fresh permutations of its set. The
    labelled stream is the same with and without an unlabelled set: a supervised baseline trains on
    the same labelled batches.

    Args:
        dataset: The `SemiSegDataset` to draw from.
        shuffle: Whether every pass over a set is a fresh permutation; otherwise it is in order.
        seed: Seed of all streams, the same on all ranks. `None` draws one and shares it.

    Examples:
        >>> from types import SimpleNamespace
        >>> pairs = SimpleNamespace(labeled=range(2), unlabeled=range(4))
        >>> draws = iter(PairSampler(pairs, seed=0))
        >>> [next(draws)[:2] for _ in range(4)]  # each labelled image twice, each unlabelled once
        [(0, 3), (1, 1), (0, 2), (1, 0)]
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int | None = None) -> None:
        super().__init__(dataset, seed)
        self.shuffle = shuffle

    def __len__(self) -> int:
        """Returns the draws of all ranks in one pass over the unlabelled set, if there is one."""
        return len(self.dataset.unlabeled or self.dataset.labeled)

    def draw(self, position: int) -> PairDraw:
        """Returns the pair at a position from 0 of the stream that all ranks share."""
        labeled, unlabeled = self.dataset.labeled, self.dataset.unlabeled

        def index(images: Sized, stream: int) -> int:
            return stream_index(len(images), self.seed, stream, position, self.shuffle)

        return PairDraw(
            labeled=index(labeled, _LABELED),
            unlabeled=None if unlabeled is None else index(unlabeled, _UNLABELED),
            labeled_seed=stream_seed(self.seed, _LABELED, position),
            unlabeled_seed=stream_seed(self.seed, _UNLABELED, position),
        )
