"""Finds images that are in two sets at once: the same file, a link to it, or a copy."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
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

    Files are compared by their bytes, those on other storage only by their address. Each step keeps
    what may be in both sets, so that few files are read as a whole.
    """
    ours, theirs = list(ours), list(theirs)
    for key in (os.path.getsize, _few_bytes, _all_bytes):
        keys, second_keys = _keys(key, ours), _keys(key, theirs)
        twins = {keys[path]: path for path in reversed(ours)}
        common = twins.keys() & second_keys.values()
        ours = [path for path in ours if keys[path] in common]
        theirs = [path for path in theirs if second_keys[path] in common]
    return [(twins[second_keys[path]], path) for path in theirs]


def _keys(key: Callable[[StrPath], Any], paths: Iterable[StrPath]) -> dict[StrPath, Any]:
    """Returns what each file has in common with its copies, or the address of one elsewhere."""
    keys = {}
    for path in paths:
        try:
            keys[path] = key(path)
        except OSError:  # on other storage; missing ones are reported elsewhere
            keys[path] = str(path)
    return keys


def _few_bytes(path: StrPath) -> bytes:
    with open(path, 'rb') as file:
        file.seek(max(os.fstat(file.fileno()).st_size - _FEW, 0) // 2)
        return file.read(_FEW)


def _all_bytes(path: StrPath) -> bytes:
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).digest()
