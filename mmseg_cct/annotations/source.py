"""Files of an export: a file, a folder or a ZIP, which may be damaged or hostile."""

import codecs
import json
import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from xml.etree import ElementTree

import yaml

from mmseg_cct.datasets.files.image_files import IMAGE_SUFFIXES, find_files, require_file
from mmseg_cct.errors import Problem, UserError
from mmseg_cct.utils.text import one_line

from .class_table import TABLE
from .shapes import LeftOut, Shape

# Annotations compress to a tenth, images do not; what compresses to a hundredth is a bomb.
_HARMLESS = 2**26  # bytes
_RATIO = 100
T = TypeVar('T')
# What code may raise when a file is not what it seems
_DAMAGED = (
    *(LookupError, TypeError, ValueError, AttributeError, ArithmeticError, MemoryError),
    *(RecursionError, yaml.YAMLError),
)
_DECLARED = re.compile(rb'\s*<\?xml[^>]*encoding=["\']([\w.-]+)')
_LOOKED_AT = 8  # JSON files that tell the format
# Folders of masks that tools put beside an export's images
_NO_IMAGES = ('SegmentationClass', 'SegmentationObject', 'masks_machine', 'masks_human', 'masks')


class Source:
    """The files of an export (a file, a folder or a ZIP), by their names relative to it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._zip: zipfile.ZipFile | None = None
        self._parsed: dict[str, Any] = {}
        self._unpacked = self._packed = 0
        if self.path.is_dir():
            found = (file.relative_to(self.path) for file in find_files(self.path))
            names = [file.as_posix() for file in found]
        elif not self.path.is_file():
            raise UserError(str(path), 'no such file', 'an export, or its folder')
        elif zipfile.is_zipfile(self.path):
            try:
                self._zip = zipfile.ZipFile(self.path)
            except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
                raise UserError(self._unreadable('', error)) from None
            names = [each.filename for each in self._zip.infolist() if not each.is_dir()]
        else:
            names = [self.path.name]
        hidden = ('.', '__MACOSX')
        self.names = sorted(
            name
            for name in names
            if name != TABLE and not any(part.startswith(hidden) for part in name.split('/'))
        )
        self._known = set(self.names)
        self.masks: set[str] = set()  # pictures that a reader takes for masks, so no images
        self.damaged: list[UserError] = []  # of the JSON files that tell the format

    def place(self, name: str) -> str:
        """Returns what to call a file in messages."""
        if self._zip:
            return f'{self.path}: {name}' if name else str(self.path)
        return str(self.path / name if self.path.is_dir() else self.path)

    def file(self, name: str) -> Path | None:
        """Returns the path of a file, or None in a ZIP."""
        return None if self._zip else Path(self.place(name))

    def read(self, name: str) -> bytes:
        """Reads a file."""
        try:
            if not self._zip:
                path = Path(self.place(name))
                require_file(path)
                return path.read_bytes()
            info = self._zip.getinfo(name)
            # of all files together: a bomb may have many small ones
            self._unpacked += info.file_size
            self._packed += info.compress_size
            if self._unpacked > max(_HARMLESS, _RATIO * self._packed):
                found = f'{self._unpacked} bytes packed into {self._packed} up to here'
                raise UserError(self.place(name), found, 'an export of a tool')
            return self._zip.read(info)
        # an encrypted file raises RuntimeError
        except (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            raise UserError(self._unreadable(name, error)) from None

    def text(self, name: str) -> str:
        """Reads text in the encoding of its byte order mark or XML declaration, or in UTF-8."""
        data = self.read(name)
        declared = _DECLARED.match(data)
        encoding = declared[1].decode() if declared else 'utf-8-sig'
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            encoding = 'utf-16'
        try:
            return data.decode(encoding)
        except (UnicodeDecodeError, LookupError) as error:
            raise UserError(self._unreadable(name, error)) from None

    def json(self, name: str) -> Any:
        """Reads JSON; files that `sample` has read are not read again."""
        if name in self._parsed:
            return self._parsed[name]
        text = self.text(name)
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            found = f'not JSON ({one_line(error, 100)})'
            raise UserError(self.place(name), found, 'an export of a tool') from None

    def xml(self, name: str) -> ElementTree.Element:
        """Reads XML without a DTD, whose entities could grow without limit."""
        text = self.text(name)
        if '<!DOCTYPE' in text or '<!ENTITY' in text:
            raise UserError(self.place(name), 'XML with a DTD', 'XML without entities')
        try:
            return ElementTree.fromstring(text)
        except (ElementTree.ParseError, ValueError, RecursionError) as error:
            raise UserError(self._unreadable(name, error)) from None

    def ending(self, *ends: str) -> list[str]:
        """Lists the files whose names have one of these ends, in any case."""
        return [name for name in self.names if name.lower().endswith(ends)]

    def named(self, file: str) -> str:
        """Returns the first file with this name in any folder; empty if there is none."""
        return next((name for name in self.names if name.split('/')[-1] == file), '')

    def jsons(self, is_mine: Callable[[Any], bool]) -> dict[str, Any]:
        """Reads all JSON files and keeps those of one kind: contents by name."""
        contents = ((name, self.json(name)) for name in self.ending('.json'))
        return {name: content for name, content in contents if is_mine(content)}

    @cached_property
    def sample(self) -> dict[str, Any]:
        """The content of some JSON files by name; damaged ones are left out."""
        for name in self.ending('.json')[:_LOOKED_AT]:
            try:
                self._parsed[name] = self.json(name)
            except UserError as error:
                self.damaged.append(error)
        return dict(self._parsed)

    def images(self) -> dict[str, str]:
        """Finds the images of the export: files by name without suffix, of which each is one."""
        found: dict[str, str] = {}
        for name in self.ending(*IMAGE_SUFFIXES):
            if name in self.masks or set(_NO_IMAGES) & set(name.split('/')[:-1]):
                continue
            other = found.setdefault(posixpath.splitext(name)[0], name)
            if other != name:
                problem = f'differs from {posixpath.basename(other)} in its extension only'
                expected = 'one image for each name, or --images'
                raise UserError(self.place(name), problem, expected)
        return found

    def beside(self, name: str, file: str) -> str:
        """Resolves a path relative to the file `name` if that exists; else returns it as it is."""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), file))
        return path if path in self._known else file

    def _unreadable(self, name: str, error: Exception) -> Problem:
        found = f'cannot be read ({one_line(getattr(error, "strerror", None) or error, 100)})'
        return Problem(self.place(name), found, 'an export of a tool')


@contextmanager
def reading(place: str, kind: str) -> Iterator[None]:
    """Turns what a damaged or hostile file raises into a `UserError` that names the place."""
    try:
        yield
    except UserError as error:
        if all(place in str(each.key) for each in error.problems):
            raise
        raise error.within(place) from None
    except _DAMAGED as error:
        found = f'damaged ({one_line(f"{type(error).__name__}: {error}", 100)})'
        raise UserError(place, found, f'an export as {kind} writes it') from None


def read_part(
    place: str,
    kind: str,
    otherwise: LeftOut,
    make: Callable[..., Shape | LeftOut | None],
    *args: Any,
) -> Shape | LeftOut:
    """Makes a shape of a part of an export, or `otherwise` if the part is no region or damaged.

    A part that is damaged and lies nowhere is an error: its pixels would become background.
    """
    try:
        with reading(place, kind):
            return make(*args) or otherwise
    except UserError as error:
        if otherwise.extent is None:
            raise
        return replace(otherwise, fault=str(error))


def read_each(
    source: Source, names: Iterable[str], kind: str, make: Callable[..., T], *args: Any
) -> Iterator[T | UserError]:
    """Calls `make(source, name, *args)` for each of some files, as `attempt` does."""
    for name in names:
        yield attempt(source.place(name), kind, make, source, name, *args)


def attempt(place: str, kind: str, make: Callable[..., T], *args: Any) -> T | UserError:
    """Calls `make` for a part of an export; returns its error, so that other parts go on."""
    try:
        with reading(place, kind):
            return make(*args)
    except UserError as error:
        return error


def class_names(parts: Iterable[T], names_of: Callable[[T], Iterable[str]]) -> dict[str, None]:
    """Collects and sorts class names; what is damaged is told when it is read as a whole."""
    found: set[str] = set()
    for part in parts:
        with suppress(UserError), reading('', ''):
            found.update(names_of(part))
    return dict.fromkeys(sorted(found))
