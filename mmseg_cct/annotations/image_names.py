"""Matches an annotation tool's image names to files."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_files import image_stem

# Label Studio adds this prefix to the name of an upload, and Django cleans the rest.
_UPLOAD = re.compile(r'^[0-9a-f]{8}-')
_Names = Mapping[str, list[tuple[list[str], str]]]  # parts of the path and name, by the last part


class ImageNames:
    """Images by name (path without extension); a tool's path may have more or fewer folders."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_end, self._by_upload = defaultdict(list), defaultdict(list)
        self._taken: set[str] = set()
        names = list(names)
        endings = {re.split(r'(?=_[A-Za-z]\w*$)', name)[-1] for name in names}
        self._ending = endings.pop() if len(endings) == 1 else ''  # such as _leftImg8bit
        for name in names:
            *folders, end = _composed(name).split('/')
            self._by_end[end].append(([*folders, end], name))
            cleaned = _cleaned(end)
            self._by_upload[cleaned].append(([*folders, cleaned], name))

    def take(self, name: str) -> str:
        """Returns the name of an image that gets its mask; the second time is an error."""
        if name in self._taken:
            raise UserError(name, 'annotated twice', 'each image once')
        self._taken.add(name)
        return name

    def find(self, name: str) -> str | None:
        """Finds the image by a tool's name for it, or None.

        One path must be the end of the other: `a/1.jpg` is not `b/1.jpg`. Among several matches the
        one with the most folders in common counts; a tie is an error. An upload may have lost its
        folders, a name may be percent-encoded, and lack the ending that all images share.
        """
        path = _composed(image_stem(name.replace('\\', '/')))  # as Windows writes it
        parts = [part for part in path.split('/') if part not in ('', '.')]
        if not parts:
            return None
        *folders, end = parts
        for other in (parts, unquote(path).split('/'), [*folders, f'{end}{self._ending}']):
            if found := _find(other, self._by_end):
                return found
        if not _UPLOAD.match(end):
            return None
        end = _cleaned(_UPLOAD.sub('', end))
        return _find([*folders, end], self._by_upload) or _find([end], self._by_upload)


def _find(parts: list[str], names: _Names) -> str | None:
    ranks: dict[tuple[int, bool], list[str]] = defaultdict(list)  # by folders in common
    for own, name in names.get(parts[-1], ()):
        common = min(len(own), len(parts))
        if own[-common:] == parts[-common:]:
            ranks[common, own == parts].append(name)
    if not ranks:
        return None
    best, *others = ranks[max(ranks)]
    if others:
        problem = f'stands for {best} and {others[0]}'
        raise UserError('/'.join(parts), problem, 'the folder, too')
    return best


def _composed(name: str) -> str:
    """Writes accents as tools do; macOS may store `ä` as `a` and its dots."""
    return unicodedata.normalize('NFC', name)


def _cleaned(end: str) -> str:
    """Changes a name without its extension as Django's `get_valid_filename` does."""
    return re.sub(r'[^-\w.]', '', end.replace(' ', '_'))
