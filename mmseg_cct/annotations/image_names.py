"""Finds the image that an annotation tool's name stands for."""

import re
from collections import defaultdict
from collections.abc import Iterable

from mmseg_cct.errors import Problem, UserError
from mmseg_cct.utils.image_lists import image_stem

# Label Studio adds this prefix to the name of an upload.
_UPLOAD = re.compile(r'^[0-9a-f]{8}-')


class ImageNames:
    """Images by name (path without extension); a tool's path may have more or fewer folders."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_end = defaultdict(list)
        for name in names:
            parts = name.split('/')
            self._by_end[parts[-1]].append(parts)

    def find(self, name: str) -> str | None:
        """Finds the image by a tool's name for it, or None.

        One path must be the end of the other: `a/1.jpg` is not `b/1.jpg`. Among several matches the
        one with the most folders in common counts; a tie is a `UserError`.
        """
        path = image_stem(name.replace('\\', '/'))  # as Windows writes it
        parts = [part for part in path.split('/') if part not in ('', '.')]
        if not parts:
            return None
        return self._find(parts) or self._find([*parts[:-1], _UPLOAD.sub('', parts[-1])])

    def _find(self, parts: list[str]) -> str | None:
        found: list[list[str]] = []
        for own in self._by_end.get(parts[-1], ()):
            common = min(len(own), len(parts))
            if own[-common:] == parts[-common:]:
                found.append(own)
        if not found:
            return None
        most = max(min(len(own), len(parts)) for own in found)
        best = [own for own in found if min(len(own), len(parts)) == most]
        if parts in best:
            best = [parts]
        if len(best) > 1:
            first, second = ('/'.join(own) for own in best[:2])
            raise UserError(
                Problem('/'.join(parts), f'stands for {first} and {second}', 'the folder, too')
            )
        return '/'.join(best[0])
