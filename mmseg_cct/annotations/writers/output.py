"""What a writer gets, and the files that it makes."""

import filecmp
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TextIO

from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import part_of

from ..contours import TracedImage
from ..shapes import Color


class Export(NamedTuple):
    """What a format writes."""

    out: Path  # the folder, which may be missing
    classes: Mapping[str, Color]
    images: Iterable[TracedImage]  # in one pass
    folder: Path  # the image files are below it

    @contextmanager
    def open(self, name: str) -> Iterator[TextIO]:
        """Opens a text file for writing; it appears only once it is complete.

        Raises:
            UserError: If it exists with other contents, which somebody may have edited.
        """
        path = self.out / name
        with part_of(path) as part:
            with part.open('w', encoding='utf-8', errors='backslashreplace', newline='\n') as file:
                yield file
            # A second run may write the same again: a stopped one left some of the files.
            if path.exists() and not filecmp.cmp(part, path, shallow=False):
                problem = 'exists with other contents, perhaps corrected: remove it or change --out'
                raise UserError(path, problem)
