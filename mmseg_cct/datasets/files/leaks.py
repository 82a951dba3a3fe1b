"""Finds images that are in two sets at once: the same file, a link to it, or a copy."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

# A few bytes tell most files of equal size apart, such as images without compression.
_FEW = 4096

StrPath = str | os.PathLike
Pair = tuple[StrPath, StrPath]  # an image and its twin in another set
Group = tuple[list[StrPath], list[StrPath]]  # files of both sets


class _Index(NamedTuple):
    """The files of a set by what tells them apart without reading them."""

    first: dict[Any, StrPath]  # of each mark
    by_size: dict[int, list[StrPath]]


def describe_leaks(sets: Mapping[str, Iterable[StrPath]]) -> Iterator[str]:
    """Compares sets, by the kind of their images; yields a warning for each leak.

    The last one may be long: it is not kept, and each of its files is looked at once.
    """
    indexes: dict[str, _Index] = {}
    for number, (kind, paths) in enumerate(sets.items(), 1):
        files = paths if number == len(sets) else list(paths)
        for own_kind, common in zip(indexes, _common(list(indexes.values()), files)):
            if common:
                twin, first = common[0]
                same = '' if first == twin else f' (the same as {twin})'
                yield (
                    f'{len(common)} images are both {own_kind} and {kind}, the first is '
                    f'{first}{same}; expected two sets without a common image'
                )
        if number < len(sets):
            indexes[kind] = _indexed(files)


def common_images(ours: Iterable[StrPath], theirs: Iterable[StrPath]) -> list[Pair]:
    """Finds the images of the second set that are in the first, each after its twin there.

    Files of equal size are compared by their bytes, files on other storage only by their address.
    """
    return _common([_indexed(ours)], theirs)[0]


def _indexed(paths: Iterable[StrPath]) -> _Index:
    index = _Index({}, defaultdict(list))
    for path in paths:
        mark, size = _mark_of(path)
        index.first.setdefault(mark, path)
        if size is not None:
            index.by_size[size].append(path)
    return index


def _common(indexes: Sequence[_Index], paths: Iterable[StrPath]) -> list[list[Pair]]:
    pairs: list[list[Pair]] = [[] for _ in indexes]
    rests = [defaultdict[int, list[StrPath]](list) for _ in indexes]
    for path in paths if indexes else ():
        mark, size = _mark_of(path)
        for index, found, rest in zip(indexes, pairs, rests):
            if twin := index.first.get(mark):
                found.append((twin, path))
            elif size in index.by_size:
                rest[size].append(path)
    for index, found, rest in zip(indexes, pairs, rests):
        groups = [(index.by_size[size], others) for size, others in rest.items()]
        for content in (_few_bytes, _all_bytes):
            groups = [part for group in groups for part in _divided(group, content)]
        found += [(mine[0], other) for mine, others in groups for other in others]
    return pairs


def _mark_of(path: StrPath) -> tuple[Any, int | None]:
    """What a file has in common with all links to it, and its size; else its address."""
    try:
        found = os.stat(path)
    except OSError:  # on other storage; missing ones are reported elsewhere
        return str(path), None
    return (found.st_dev, found.st_ino), found.st_size


def _divided(group: Group, content: Callable[[StrPath], bytes]) -> list[Group]:
    """Divides the files of both sets by their content; leaves out those without a counterpart."""
    divided: dict[bytes, Group] = defaultdict(lambda: ([], []))
    for index, paths in enumerate(group):
        for path in paths:
            divided[content(path)][index].append(path)
    return [part for part in divided.values() if all(part)]


def _few_bytes(path: StrPath) -> bytes:
    with open(path, 'rb') as file:
        file.seek(max(os.fstat(file.fileno()).st_size - _FEW, 0) // 2)
        return file.read(_FEW)


def _all_bytes(path: StrPath) -> bytes:
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).digest()
