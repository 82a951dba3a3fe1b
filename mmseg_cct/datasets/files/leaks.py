"""Finds images that are in two sets at once: the same file, a link to it, or a copy."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
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
    first, by_size = _marked(ours)
    pairs, rest = [], defaultdict[int, list[StrPath]](list)
    for path in theirs:
        mark, size = _mark_of(path)
        if twin := first.get(mark):
            pairs.append((twin, path))
        elif size in by_size:
            rest[size].append(path)
    groups = [(by_size[size], paths) for size, paths in rest.items()]
    for content in (_few_bytes, _all_bytes):
        groups = [part for group in groups for part in _divided(group, content)]
    return pairs + [(mine[0], other) for mine, others in groups for other in others]


def _marked(paths: Iterable[StrPath]) -> tuple[dict[Any, StrPath], dict[int, list[StrPath]]]:
    first, by_size = dict[Any, StrPath](), defaultdict[int, list[StrPath]](list)
    for path in paths:
        mark, size = _mark_of(path)
        first.setdefault(mark, path)
        if size is not None:
            by_size[size].append(path)
    return first, by_size


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
