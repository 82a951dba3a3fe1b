"""Finds image and mask files, and text files that list images."""

import os
import re
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path, PurePosixPath

from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import read_utf8, write_text
from mmseg_cct.utils.text import counted, is_unicode

# Folders that link to one another make a tree of paths that grows without limit.
_MOST_WAYS = 1000
_name_of = attrgetter('name')
IMAGE_SUFFIXES = ('.jpg', '.jpeg', '.png', '.bmp', '.tif', '.tiff', '.webp')


def find_files(folder: str | os.PathLike) -> list[str]:
    """Finds the files below a folder, sorted; follows links, and lists broken ones too.

    Pipes and devices would block forever when read, and are refused.
    """
    return [path for path, _ in _walk(folder)]


def _walk(folder: str | os.PathLike) -> Iterator[tuple[str, bool]]:
    """Yields each file's path, as `Path` writes it, and whether it is a broken link.

    Strings and not paths, each of which takes eight times as long: folders hold a million images.
    """
    ways: Counter[str] = Counter()

    def walk(here: str, prefix: str, above: frozenset[str]) -> Iterator[tuple[str, bool]]:
        for entry in sorted(os.scandir(here), key=_name_of):
            path = prefix + entry.name
            if entry.is_file():
                yield path, False
            elif not entry.is_dir():
                require_file(path)
                yield path, True
            elif (real := os.path.realpath(path)) not in above:  # else a link leads in a circle
                ways[real] += 1
                if ways[real] > _MOST_WAYS:
                    found_ways = f'links lead to {real} in more than {_MOST_WAYS} ways'
                    raise UserError(folder, found_ways, 'fewer links')
                yield from walk(path, f'{path}/', above | {real})

    yield from walk(os.fspath(folder), _prefix(folder), frozenset({os.path.realpath(folder)}))


def _prefix(folder: str | os.PathLike) -> str:
    root = Path(folder).as_posix()
    return '' if root == '.' else root if root.endswith('/') else f'{root}/'


def require_file(path: str | os.PathLike) -> None:
    """Rejects a pipe or a device, which would block forever when read."""
    with suppress(OSError):  # not a local file, or no file at all
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise UserError(path, 'a pipe or a device', 'a file')


def find_masks(folder: str | os.PathLike, suffix: str = '.png') -> dict[str, str]:
    """Finds the masks below a folder: sorted paths by relative name without suffix.

    The `suffix` may be in upper or lower case: a skipped `.PNG` would leave its image without mask.
    """
    if not os.path.isdir(folder):
        raise UserError(folder, 'no such folder', 'a folder of masks')
    first, end = len(_prefix(folder)), suffix.lower()
    masks: dict[str, str] = {}
    for path in find_files(folder):
        if path.lower().endswith(end):
            _add(masks, path[first : len(path) - len(end)], path, 'mask')
    return masks


def find_images(
    folder: str | os.PathLike,
    suffix: str | None = None,
    without: Collection[Path] = (),
    others: list[str] | None = None,
) -> dict[str, str]:
    """Finds the images below a folder: sorted paths by relative name without suffix.

    The `suffix` ends their names (``_leftImg8bit.png`` for Cityscapes), in any case; None takes
    every image format. The resolved paths in `without` are left out. Files of other formats are
    added to `others`.
    """
    if not os.path.isdir(folder):
        raise UserError(folder, 'no such folder', 'a folder of images')
    first, images = len(_prefix(folder)), dict[str, str]()
    for path, is_broken in _walk(folder):
        end = os.path.splitext(path)[1] if suffix is None else suffix
        is_one = (
            end.lower() in IMAGE_SUFFIXES if suffix is None else path.lower().endswith(end.lower())
        )
        if not is_one or (without and Path(path).resolve() in without):
            if others is not None and not is_one and end:
                others.append(path)
            continue
        if is_broken:
            raise UserError(path, f'a link to {os.readlink(path)}, which is not there', 'an image')
        _add(images, path[first : len(path) - len(end)], path, 'image')
    if not images:
        expected = ', '.join(IMAGE_SUFFIXES) if suffix is None else f'names that end in {suffix}'
        raise UserError(folder, 'no image in this folder', expected)
    return dict(sorted(images.items()))


def describe_left_out(folder: str | os.PathLike, others: Sequence[str]) -> str:
    """Says which files of a folder of images are none, such as HEIC and DICOM."""
    kinds = ', '.join(sorted({os.path.splitext(path)[1] for path in others})[:5])
    return (
        f'{folder}: {counted(len(others), "file")} left out ({kinds}), the first is {others[0]}; '
        f'expected {", ".join(IMAGE_SUFFIXES)}'
    )


def add_by_name(found: dict[str, str], path: str, root: str | os.PathLike) -> str:
    """Adds a file by its path below a folder without extension, which it returns.

    Raises:
        UserError: If another file has that name.
    """
    name = os.path.splitext(Path(path).relative_to(root).as_posix())[0]
    _add(found, name, path, 'image')
    return name


def _add(found: dict[str, str], name: str, path: str, kind: str) -> None:
    if (other := found.setdefault(name, path)) != path:
        problem = f'differs from {os.path.basename(other)} in its extension only'
        raise UserError(path, problem, f'one {kind} for each name')


def suffix_of_masks(masks: Collection[str], images: Collection[str]) -> str | None:
    """Finds the ending that all masks add to their images' names, such as `_mask`, or None."""
    first = next(iter(masks), '')
    for image in sorted(images, key=len, reverse=True):
        end = first.removeprefix(image)
        if end not in ('', first) and all(
            name.endswith(end) and name[: -len(end)] in images for name in masks
        ):
            return end
    return None


def read_list(path: str | os.PathLike) -> list[str]:
    """Reads the names in a list of images, in its order.

    A line holds a name, or the two columns of the public CCT code, image and mask
    (``/JPEGImages/2007_000032.jpg /SegmentationClassAug/2007_000032.png``), which stand for the
    image's stem.
    """
    expected = 'a text file with one image name per line'
    if not os.path.exists(path):
        raise UserError(path, 'no such file', f'{expected} (tools/make_splits.py makes such lists)')
    # Not `splitlines`, which also breaks lines at other characters that a name may hold.
    lines = re.split(r'[\r\n]', read_utf8(path, expected))
    names = [_image_name(line) for line in lines if line.strip()]
    if not names:
        raise UserError(path, 'the list is empty', expected)
    seen: dict[str, str] = {}  # by stem
    for name in names:
        stem = image_stem(name)
        if stem in seen:
            twice = f'{name} is listed twice'
            same = f'{seen[stem]} and {name} are the same image'
            raise UserError(path, twice if seen[stem] == name else same, 'every image once')
        seen[stem] = name
    return names


def image_stem(name: str) -> str:
    """Removes the extension of an image format from a name; any other is part of the name."""
    stem, extension = os.path.splitext(name)
    return stem if extension.lower() in IMAGE_SUFFIXES else name


def find_listed(name: str, images: Collection[str]) -> str | None:
    """Finds the image that a line of a list or a table stands for."""
    return next((each for each in (name, image_stem(name)) if each in images), None)


def write_list(path: str | Path, names: Iterable[str]) -> None:
    """Writes a list of images, one name per line."""
    lines = list(names)
    require_listable(path, lines)
    write_text(path, ''.join(f'{name}\n' for name in lines))


def require_listable(path: str | os.PathLike, names: Iterable[str]) -> None:
    """Rejects names that would not be read back from a list as they are.

    Line breaks, outer spaces, non-Unicode characters or what looks like two columns change a name.
    """
    for name in names:
        if re.search(r'[\r\n]', name) or _image_name(name) != name or not is_unicode(name):
            raise UserError(
                path,
                f'{name!a} cannot be a line of a list',
                'an image name without line breaks, outer spaces and a second extension after a '
                'space',
            )


def resolve_list(ann_file: str) -> str:
    """Makes the path of a list in the working directory absolute; it goes before `data_root`."""
    if ann_file and not os.path.isabs(ann_file) and os.path.isfile(ann_file):
        return os.path.abspath(ann_file)
    return ann_file


def _image_name(line: str) -> str:
    # A single column may hold spaces, so two columns are known by their two file extensions.
    two_columns = re.fullmatch(r'(\S+\.\w+)\s+\S+\.\w+', line.strip())
    return PurePosixPath(two_columns[1]).stem if two_columns else line.strip()
