"""Finds images that are in two sets at once: the same file, a link to it, or a copy."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

# Images without compression are all of one size, and a few bytes of the middle tell most apart.
_FEW = 4096

StrPath = str | os.PathLike
Pair = tuple[StrPath, StrPath]  # an image and its twin in another set


def describe_leaks(sets: Mapping[str, Iterable[StrPath]]) -> Iterator[str]:
    """Compares each two sets, by what their images are; yields a warning for each leak."""
    lists = {name: list(paths) for name, paths in sets.items()}
    for (name, paths), (second_name, second_paths) in combinations(lists.items(), 2):
        if common := common_images(paths, second_paths):
            twin, first = common[0]
            same = '' if first == twin else f' (the same as {twin})'
            line = f'{len(common)} images are both {name} and {second_name}'
            yield f'{line}, the first is {first}{same}; expected two sets without a common image'


def common_images(ours: Iterable[StrPath], theirs: Iterable[StrPath]) -> list[Pair]:
    """Finds the images of the second set that are in the first, each after its twin there.

    Files of equal size are compared by their bytes, files on other storage only by their address.
    """
    by_file: dict[Any, StrPath] = {}
    by_size: dict[int, list[StrPath]] = defaultdict(list)
    for path in ours:
        file, size = _file_and_size(path)
        by_file.setdefault(file, path)
        by_size[size].append(path)
    pairs: list[Pair] = []
    alike: dict[int, list[StrPath]] = defaultdict(list)
    for path in theirs:
        file, size = _file_and_size(path)
        if twin := by_file.get(file):
            pairs.append((twin, path))
        elif size >= 0 and size in by_size:
            alike[size].append(path)
    for size, paths in alike.items():
        few = {_few_bytes(path) for path in by_size[size]}
        paths = [path for path in paths if _few_bytes(path) in few]
        if paths:
            twins = {_all_bytes(path): path for path in reversed(by_size[size])}
            contents = ((_all_bytes(path), path) for path in paths)
            pairs += [(twins[content], path) for content, path in contents if content in twins]
    return pairs


def _file_and_size(path: StrPath) -> tuple[Any, int]:
    """What a file has in common with all links to it, and its size; else its address and -1."""
    try:
        status = os.stat(path)
    except OSError:  # on other storage; missing ones are reported elsewhere
        return str(path), -1
    return (status.st_dev, status.st_ino), status.st_size


def _few_bytes(path: StrPath) -> bytes:
    with open(path, 'rb') as file:
        file.seek(max(os.fstat(file.fileno()).st_size - _FEW, 0) // 2)
        return file.read(_FEW)


def _all_bytes(path: StrPath) -> bytes:
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).digest()
