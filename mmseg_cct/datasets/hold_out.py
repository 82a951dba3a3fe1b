"""Chooses images to validate on: each class on both sides, neighbouring names together."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import groupby, pairwise
from os.path import commonprefix

import numpy as np

from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.utils.text import natural_order

SHARE = 1 / 5  # of the labelled images
# What a choice costs: a class that is never trained or never validated on outweighs its share, and
# a block beside one that is held out already leaves fewer neighbours apart.
_UNTRAINED, _UNSEEN, _APART = 20.0, 10.0, 0.1
_MOST_BLOCKS = 2000  # to choose from: the time grows with their square


def hold_out(labels: Mapping[str, frozenset[int]]) -> list[str]:
    """Holds out about every fifth image, in order.

    Frames of one scene look alike, and their names differ in the last number only. So blocks of
    neighbours are held out, as long as possible with each class on both sides. Roboflow's copies
    `NAME.rf.HASH` of one photo stay together.

    Args:
        labels: The labels in the mask of each image by its name, two images or more.

    Returns:
        The names of the images to validate on, sorted.

    Examples:
        >>> hold_out({f'scene_{n:02}': frozenset({0}) for n in range(10)})
        ['scene_00', 'scene_01']
    """
    copies = defaultdict[str, list[str]](list)
    for name in labels:
        copies[name.partition('.rf.')[0]].append(name)
    if len(copies) == 1:
        return _held_out(labels)
    photos = {
        photo: frozenset().union(*(labels[name] for name in names))
        for photo, names in copies.items()
    }
    return sorted(name for photo in _held_out(photos) for name in copies[photo])


def _held_out(labels: Mapping[str, frozenset[int]]) -> list[str]:
    num_held = -(-len(labels) // round(1 / SHARE))
    lengths = [num_held, num_held // 2, num_held // 4, num_held // 8, len(labels) // _MOST_BLOCKS]
    best, lowest_cost = list[str](), np.inf
    for length in lengths:
        held = _choose(_blocks(labels, max(length, 1)), labels, num_held)
        trained = labels.keys() - set(held)
        unseen, untrained = one_sided(*([labels[n] for n in names] for names in (trained, held)))
        cost = _UNSEEN * len(unseen) + _UNTRAINED * len(untrained)
        if cost < lowest_cost:
            best, lowest_cost = held, cost
        if cost == 0:
            break
    return best


def one_sided(
    trained: Iterable[frozenset[int]], validated: Iterable[frozenset[int]]
) -> tuple[set[int], set[int]]:
    """Finds the classes that are only trained, and those that are only validated on."""
    train, val = (set().union(*side) - {IGNORE_INDEX} for side in (trained, validated))
    return train - val, val - train


def _blocks(labels: Mapping[str, frozenset[int]], length: int) -> list[tuple[str, list[str]]]:
    """Cuts each scene into blocks of about a length; returns them with their scenes.

    Frames are in the order of their numbers, which an ending of all names may follow, as in
    `frame_7_leftImg8bit`.
    """
    num_shared = len(commonprefix([name[::-1] for name in labels]))  # noqa: RUF071 (of characters)
    stems = {name: name[: len(name) - num_shared] for name in labels}

    def frame_order(name: str) -> tuple[list[str | int], str]:
        return natural_order(stems[name]), name

    frames = sorted(labels, key=frame_order)
    scene_of = {name: re.sub(r'\d+\D*$', '', stems[name]) for name in frames}
    if len(set(scene_of.values())) > _MOST_BLOCKS:  # neighbouring names are what is left
        scene_of = dict.fromkeys(frames, '')
    blocks = []
    for scene, names in groupby(frames, key=lambda name: scene_of[name]):
        scene_frames = np.array(list(names))
        num_blocks = -(-len(scene_frames) // length)
        blocks += [(scene, block.tolist()) for block in np.array_split(scene_frames, num_blocks)]
    return blocks


def _choose(
    blocks: list[tuple[str, list[str]]], labels: Mapping[str, frozenset[int]], num_held: int
) -> list[str]:
    """Adds the block that costs least until there are enough images (iterative stratification)."""
    classes = sorted(set().union(*labels.values()) - {IGNORE_INDEX})
    counts = [Counter(c for name in names for c in labels[name]) for _, names in blocks]
    # number of images with each class, by block
    images = np.array([[count[c] for c in classes] for count in counts]).reshape(len(blocks), -1)
    sizes = np.array([len(names) for _, names in blocks])
    scenes = [scene for scene, _ in blocks]
    continues = np.array([scene == following for scene, following in pairwise(scenes)], bool)
    total, held = images.sum(0), np.zeros(len(blocks), bool)
    while sizes[held].sum() < num_held and not held.all():
        validated = images[held].sum(0) + images  # if the block is held out too
        is_beside = np.zeros(len(blocks), bool)
        is_beside[1:] |= held[:-1] & continues
        is_beside[:-1] |= held[1:] & continues
        # What each block would cost: classes on one side, shares, size, and a place of its own.
        cost = _UNTRAINED * (validated == total).sum(1) + _UNSEEN * (validated == 0).sum(1)
        cost += np.abs(validated / total - SHARE).sum(1) / max(len(classes), 1)
        cost += np.abs(sizes[held].sum() + sizes - num_held) / num_held + _APART * ~is_beside
        cost[held] = np.inf
        held[cost.argmin()] = True
    return sorted(name for block, is_held in zip(blocks, held) if is_held for name in block[1])
