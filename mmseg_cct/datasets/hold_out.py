"""Chooses images to validate on: each class on both sides, neighbouring names together."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import groupby, pairwise
from os.path import commonprefix

import numpy as np

from mmseg_cct.datasets.files.labels import IGNORE_INDEX

SHARE = 1 / 5  # of the labelled images
# What a choice costs: a class that is never trained or never validated on outweighs its share, and
# a block beside one that is held out already leaves fewer neighbours apart.
_UNTRAINED, _UNSEEN, _APART = 20.0, 10.0, 0.1
_MOST_BLOCKS = 2000  # to choose from: the time grows with their square


def hold_out(labels: Mapping[str, frozenset[int]]) -> list[str]:
    """Holds out about every fifth image, in order.

    Frames of one scene look alike, and their names differ in the last number only. So blocks of
    neighbours are held out, as long as possible with each class on both sides.

    Args:
        labels: The labels in the mask of each image by its name, two images or more.

    Returns:
        The names of the images to validate on, sorted.

    Examples:
        >>> hold_out({f'scene_{n:02}': frozenset({0}) for n in range(10)})
        ['scene_00', 'scene_01']
    """
    number = -(-len(labels) // round(1 / SHARE))
    lengths = [number, number // 2, number // 4, number // 8, len(labels) // _MOST_BLOCKS]
    choices: dict[float, list[str]] = {}
    for length in lengths:
        held = _choose(_blocks(labels, max(length, 1)), labels, number)
        rest = labels.keys() - set(held)
        unseen, untrained = one_sided(*([labels[name] for name in side] for side in (rest, held)))
        choices.setdefault(_UNSEEN * len(unseen) + _UNTRAINED * len(untrained), held)
        if 0 in choices:
            break
    return choices[min(choices)]


def one_sided(
    trained: Iterable[frozenset[int]], validated: Iterable[frozenset[int]]
) -> tuple[set[int], set[int]]:
    """Finds the classes that are only trained, and those that are only validated on."""
    train, val = (set().union(*side) - {IGNORE_INDEX} for side in (trained, validated))
    return train - val, val - train


def _blocks(labels: Mapping[str, frozenset[int]], length: int) -> list[tuple[str, list[str]]]:
    """Cuts each scene into blocks of about a length; returns them with their scenes.

    Frames are in the order of their numbers, which an ending of all names or Roboflow's hash may
    follow, as in `frame_7_leftImg8bit`.
    """
    end = len(commonprefix([name[::-1] for name in labels]))  # noqa: RUF071 (of characters)
    stems = {name: re.sub(r'\.rf\.\w+$', '', name[: len(name) - end]) for name in labels}

    def place(name: str) -> tuple[list[str | int], str]:
        parts = re.split(r'(\d+)', stems[name])  # every second is a number
        return [int(part) if at % 2 else part for at, part in enumerate(parts)], name

    ordered = sorted(labels, key=place)
    scene_of = {name: re.sub(r'\d+\D*$', '', stems[name]) for name in ordered}
    if len(set(scene_of.values())) > _MOST_BLOCKS:  # neighbouring names are what is left
        scene_of = dict.fromkeys(ordered, '')
    return [
        (scene, part.tolist())
        for scene, names in groupby(ordered, key=lambda name: scene_of[name])
        for frames in [np.array(list(names))]
        for part in np.array_split(frames, -(-len(frames) // length))
    ]


def _choose(
    blocks: list[tuple[str, list[str]]], labels: Mapping[str, frozenset[int]], number: int
) -> list[str]:
    """Adds the block that costs least until there are enough images (iterative stratification)."""
    classes = sorted(set().union(*labels.values()) - {IGNORE_INDEX})
    counts = [Counter(c for name in names for c in labels[name]) for _, names in blocks]
    of_class = np.array([[count[c] for c in classes] for count in counts]).reshape(len(blocks), -1)
    sizes = np.array([len(names) for _, names in blocks])
    is_next = np.array([one == other for (one, _), (other, _) in pairwise(blocks)], bool)
    total, held = of_class.sum(0), np.zeros(len(blocks), bool)
    while sizes[held].sum() < number and not held.all():
        seen = of_class[held].sum(0) + of_class
        is_beside = np.zeros(len(blocks), bool)
        is_beside[1:] |= held[:-1] & is_next
        is_beside[:-1] |= held[1:] & is_next
        # What each block would cost: classes on one side, shares, size, and a place of its own.
        cost = _UNTRAINED * (seen == total).sum(1) + _UNSEEN * (seen == 0).sum(1)
        cost += np.abs(seen / total - SHARE).sum(1) / max(len(classes), 1)
        cost += np.abs(sizes[held].sum() + sizes - number) / number + _APART * ~is_beside
        cost[held] = np.inf
        held[cost.argmin()] = True
    return sorted(name for block, is_held in zip(blocks, held) if is_held for name in block[1])
