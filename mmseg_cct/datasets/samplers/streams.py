"""Independent random streams of image indices and augmentation seeds.

The value at a position depends on the seed, the stream's number and the position alone, so that any
process can continue a stream at any position.
"""

import functools

import numpy as np

_PERMUTATION, _AUGMENTATION = 0, 1


def stream_index(size: int, seed: int, stream: int, position: int, shuffle: bool = True) -> int:
    """Returns the index in [0, size) at a position of an endless chain of passes over a set.

    Every pass is a fresh permutation, or in order without `shuffle`.
    """
    epoch, offset = divmod(position, size)
    return int(_permutation(size, seed, stream, epoch)[offset]) if shuffle else offset


def stream_seed(seed: int, stream: int, position: int) -> int:
    """Returns the seed in [0, 2³²) of the augmentation at a position of a stream."""
    sequence = np.random.SeedSequence(seed, spawn_key=(stream, _AUGMENTATION, position))
    return int(sequence.generate_state(1)[0])


# Labelled and unlabelled streams of a few domains: a permutation of each is in use at a time.
@functools.lru_cache(maxsize=32)
def _permutation(size: int, seed: int, stream: int, epoch: int) -> np.ndarray:
    # RandomState over SeedSequence: NumPy promises that neither changes between versions, so a
    # published seed keeps its meaning.
    sequence = np.random.SeedSequence(seed, spawn_key=(stream, _PERMUTATION, epoch))
    return np.random.RandomState(np.random.MT19937(sequence)).permutation(size)
