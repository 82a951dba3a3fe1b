"""Text files that list images."""

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from mmseg_cct.errors import UserError


def read_list(path: str | os.PathLike) -> list[str]:
    """Reads a list of images.

    Lines hold a name, or the two columns of the public CCT code, image and mask
    (``/JPEGImages/2007_000032.jpg /SegmentationClassAug/2007_000032.png``), which give the stem of
    the image. Empty lines are skipped.

    Args:
        path: The text file.

    Returns:
        The names in the order of the file.

    Raises:
        UserError: If the file is missing, is not text, is empty, or names an image twice.
    """
    expected = 'expected a text file with one image name per line'
    try:
        text = Path(path).read_text(encoding='utf-8')
    except FileNotFoundError:
        raise UserError(
            f'{path}: no such file; {expected} (tools/make_splits.py makes such lists)'
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f'{path}: cannot be read ({error}); {expected}') from None
    names = [_image_name(line) for line in text.splitlines() if line.strip()]
    if not names:
        raise UserError(f'{path}: the list is empty; {expected}')
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise UserError(f'{path}: {name} is listed twice; expected every image once')
        seen.add(name)
    return names


def write_list(path: str | os.PathLike, names: Iterable[str]) -> None:
    """Writes a list of images, one name per line.

    Args:
        path: The text file; its folder is made where it is missing.
        names: The names.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(''.join(f'{name}\n' for name in names), encoding='utf-8')


def resolve_list(ann_file: str) -> str:
    """Resolves the path of a list that a config names.

    A list in the working directory comes before one of the same name in the data set's root.

    Args:
        ann_file: Path as the config gives it; may be empty.

    Returns:
        The absolute path if the working directory has the file, else `ann_file` unchanged, which
        the data set joins to its root.
    """
    if ann_file and not os.path.isabs(ann_file) and os.path.isfile(ann_file):
        return os.path.abspath(ann_file)
    return ann_file


def _image_name(line: str) -> str:
    # A single column may hold spaces, so two columns are known by their two file extensions.
    two_columns = re.fullmatch(r'(\S+\.\w+)\s+\S+\.\w+', line.strip())
    return PurePosixPath(two_columns[1]).stem if two_columns else line.strip()
