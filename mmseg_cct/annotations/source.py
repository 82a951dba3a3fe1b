"""Files of an export: a file, a folder or a ZIP."""

import json
import posixpath
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar
from xml.etree import ElementTree

from mmseg_cct.datasets.files.image_files import IMAGE_SUFFIXES, find_files, is_of_a_tool
from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import error_line

from .class_table import TABLE

_KEPT = 8  # JSON files that are not parsed again
T = TypeVar('T')
# What code raises when a file is not what it seems; a MemoryError is not of the file. An encrypted
# ZIP raises RuntimeError.
_DAMAGED = (
    *(LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError, EOFError),
    *(zipfile.BadZipFile, zlib.error, ElementTree.ParseError),
)
# Folders of masks that tools put beside an export's images
_NO_IMAGES = {'SegmentationClass', 'SegmentationObject', 'masks'}


class Source:
    """The files of an export (a file, a folder or a ZIP), by their names relative to it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._zip: zipfile.ZipFile | None = None
        self.json = lru_cache(_KEPT)(self._json)
        self.damaged: list[UserError] = []  # JSON whose format cannot be told
        self.masks: set[str] = set()  # pictures that a reader takes for masks, so no images
        if self.path.is_dir():
            names = [Path(file).relative_to(self.path).as_posix() for file in find_files(self.path)]
        elif not self.path.is_file():
            raise UserError(str(path), 'no such file', 'an export, or its folder')
        elif zipfile.is_zipfile(self.path):
            with reading(str(self.path)):
                self._zip = zipfile.ZipFile(self.path)
            names = [info.filename for info in self._zip.infolist() if not info.is_dir()]
        else:
            names = [self.path.name]
        # The order of a folder differs between machines, and with it would the ids of classes
        self.names = sorted(name for name in names if name != TABLE and not is_of_a_tool(name))

    def location(self, name: str) -> str:
        """Returns what to call a file in messages."""
        if self._zip:
            return f'{self.path}: {name}'
        return str(self.path / name if self.path.is_dir() else self.path)

    def file(self, name: str) -> Path | None:
        """Returns the path of a file, or None in a ZIP."""
        return None if self._zip else Path(self.location(name))

    def read(self, name: str) -> bytes:
        """Reads a file."""
        with reading(self.location(name)):
            if self._zip:
                return self._zip.read(name)
            return Path(self.location(name)).read_bytes()

    def _json(self, name: str) -> Any:
        with reading(self.location(name)):
            return json.loads(self.read(name))

    def ending(self, *ends: str) -> list[str]:
        """Lists the files whose names have one of these ends, in any case."""
        return [name for name in self.names if name.lower().endswith(ends)]

    @cached_property
    def json_keys(self) -> dict[str, tuple[type, set[str]]]:
        """The type of each JSON file's content, and the keys of that or of its first entry."""
        keys_by_file = {}
        for name in self.ending('.json'):
            try:
                content = self.json(name)
            except UserError as error:
                self.damaged.append(error)
                continue
            first = content[0] if isinstance(content, list) and content else content
            keys_by_file[name] = type(content), {*first} if isinstance(first, dict) else set()
        return keys_by_file

    def images(self) -> dict[str, str]:
        """Finds the images of the export: files by name without suffix, of which each is one."""
        images: dict[str, str] = {}
        for name in self.ending(*IMAGE_SUFFIXES):
            if name in self.masks or _NO_IMAGES & {*name.split('/')[:-1]}:
                continue
            namesake = images.setdefault(posixpath.splitext(name)[0], name)
            if namesake != name:
                problem = f'differs from {posixpath.basename(namesake)} in its extension only'
                expected = 'one image for each name, or --images'
                raise UserError(self.location(name), problem, expected)
        return images


@contextmanager
def reading(location: str) -> Iterator[None]:
    """Turns what a damaged file raises into a `UserError` that names the location."""
    try:
        yield
    except UserError as error:
        if all(location in str(problem.key) for problem in error.problems):
            raise
        raise error.within(location) from None
    except _DAMAGED as error:
        problem = f'damaged ({error_line(error, 100)})'
        raise UserError(location, problem, "a labelling tool's export") from None


def attempt(location: str, make: Callable[..., T], *args: Any) -> T | UserError:
    """Calls `make` for a part of an export; returns its error, so that other parts go on."""
    try:
        with reading(location):
            return make(*args)
    except UserError as error:
        return error


def class_names(parts: Iterable[T], names_of: Callable[[T], Iterable[str]]) -> dict[str, None]:
    """Collects and sorts class names; what is damaged is told when it is read as a whole."""
    names: set[str] = set()
    for part in parts:
        with suppress(UserError), reading(''):
            names.update(names_of(part))
    return dict.fromkeys(sorted(names))
