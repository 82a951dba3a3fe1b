"""Text files that list images."""

import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath

from mmseg_cct.errors import UserError

from .files import read_utf8, write_text
from .image_files import IMAGE_SUFFIXES
from .text import is_unicode


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
