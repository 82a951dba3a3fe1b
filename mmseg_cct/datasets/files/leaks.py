"""Finds images that are in two sets at once: the same file, a link to it, or a copy."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

# A few bytes tell most files of equal size apart, such as images without compression.
_FEW = 4096

StrPath = str | os.PathLike
Group = tuple[list[StrPath], list[StrPath]]  # files of both sets


def describe_leaks(
    sets: Mapping[str, Iterable[StrPath]], others: Iterable[StrPath], kind: str
) -> Iterator[str]:
    """Compares sets, by the kind of their images, with others; yields a warning for each leak."""
    theirs = list(others)
    for own_kind, ours in sets.items():
        if common := common_images(ours, theirs):
            twin, first = common[0]
            same = '' if first == twin else f' (the same as {twin})'
            yield (
                f'{len(common)} images are both {own_kind} and {kind}, the first is {first}{same}; '
                'expected two sets without a common image'
            )


def common_images(
    ours: Iterable[StrPath], theirs: Iterable[StrPath]
) -> list[tuple[StrPath, StrPath]]:
    """Finds the images of the second set that are in the first, each after its twin there.

    Files of equal size are compared by their bytes, files on other storage only by their address.
    """
    first = {os.path.realpath(path): path for path in ours}
    pairs, rest = [], []
    for path in theirs:
        if twin := first.get(os.path.realpath(path)):
            pairs.append((twin, path))
        else:
            rest.append(path)
    return pairs + _copies(first.values(), rest)


def _copies(ours: Iterable[StrPath], theirs: Iterable[StrPath]) -> list[tuple[StrPath, StrPath]]:
    """Finds pairs of equal files by their sizes, then by some of their bytes, then by all."""
    groups = [(list(ours), list(theirs))]
    for mark in (os.path.getsize, _few_bytes, _all_bytes):
        groups = [part for group in groups for part in _divided(group, mark)]
    return [(mine[0], other) for mine, others in groups for other in others]


def _divided(group: Group, mark: Callable[[StrPath], Any]) -> list[Group]:
    """Divides the files of both sets by a mark; leaves out those without a counterpart."""
    divided: dict[Any, Group] = defaultdict(lambda: ([], []))
    for index, paths in enumerate(group):
        for path in paths:
            with suppress(OSError):  # files on other storage; others are reported elsewhere
                divided[mark(path)][index].append(path)
    return [part for part in divided.values() if all(part)]


def _few_bytes(path: StrPath) -> bytes:
    with open(path, 'rb') as file:
        file.seek(max(os.fstat(file.fileno()).st_size - _FEW, 0) // 2)
        return file.read(_FEW)


def _all_bytes(path: StrPath) -> bytes:
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).digest()
