"""The images of an import: what tools call them, and how they come into the data folder."""

import filecmp
import os
import re
import shutil
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from mmseg_cct.datasets.files.image_files import IMAGE_SUFFIXES, find_files, find_images, image_stem
from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.utils.files import part_of, require_outside, write_atomic

from .shapes import AnnotatedImage
from .source import Source

_LONGEST = 255  # bytes of a file's name
# Label Studio adds this prefix to the name of an upload, and Django cleans the rest.
_UPLOAD = re.compile(r'^[0-9a-f]{8}-')
_Names = Mapping[str, list[tuple[list[str], str]]]  # parts of the path and name, by the last part


class ImagePool:
    """Images by name, from the `given` folder, else from `out/images`, else from the `export`.

    Pictures that the export's reader takes for masks are no images; with `masks_alone` it has none.

    Raises:
        UserError: If the data folder has another image of the same name.
    """

    def __init__(
        self, out: Path, given: str | Path | None, export: Source, masks_alone: bool = False
    ) -> None:
        self.folder = out / 'images'
        self.origin = str(given or self.folder)
        self._files: dict[str, Path | str] = {}
        self._export = export
        self._is_new, self._added = True, 0
        if given and not (self.folder.is_dir() and self.folder.samefile(given)):
            require_outside(out, [Path(given)], '--out')
            masks = {file.resolve() for name in export.masks if (file := export.file(name))}
            if masks and masks >= {file.resolve() for file in find_files(given)}:
                what = f'all files of {given} are taken for masks'
                raise UserError('--images', what, '--mask-suffix with the end of their names')
            self._files |= find_images(given, without=masks)
        elif given or (self.folder.is_dir() and any(self.folder.iterdir())):
            self._files |= find_images(self.folder)
            self._is_new = False
        elif not masks_alone and (images := export.images()):
            if export.file(''):
                require_outside(out, [export.path], '--out')
            self.origin = str(export.path)
            self._files |= {name: export.file(file) or file for name, file in images.items()}

        # A ZIP may hold names that no file can have
        self.refused = [_long(name) for name, file in self._files.items() if _is_long(str(file))]
        self._files = {name: file for name, file in self._files.items() if not _is_long(str(file))}
        if self._is_new:
            raise_problems(self._conflicts())

    @property
    def names(self) -> list[str]:
        """Paths of the images, relative to their folder, without the extension."""
        return list(self._files)

    def __getitem__(self, name: str) -> Path | bytes:
        file = self._files[name]
        return self._export.read(file) if isinstance(file, str) else file

    def add(self, annotated: AnnotatedImage) -> str:
        """Writes an image embedded in its annotation into the data folder; returns its name."""
        _require_harmless(annotated.name)
        target, data = self.folder / annotated.name, annotated.data or b''
        if not target.exists():
            write_atomic(target, data)
            self._added += 1
        elif not _is_same(data, target):
            raise UserError(str(target), 'another image', f'that of {annotated.name}')
        return image_stem(annotated.name)

    def bring(self, copy: bool) -> int:
        """Links or copies all images into the data folder; returns how many were new there."""
        brought = self._added
        for name in self._files if self._is_new else ():
            target = self._target(name)
            if target.exists():
                continue
            brought += 1
            target.parent.mkdir(parents=True, exist_ok=True)
            content = self[name]
            if isinstance(content, bytes):
                write_atomic(target, content)
            elif copy:
                with part_of(target) as part:
                    shutil.copy2(content, part)
            else:
                target.symlink_to(content.resolve())
        return brought

    def _target(self, name: str) -> Path:
        return self.folder / f'{name}{PurePosixPath(str(self._files[name])).suffix}'

    def _conflicts(self) -> list[Problem]:
        problems = []
        for name, file in self._files.items():
            if isinstance(file, str):
                _require_harmless(file)
            target = self._target(name)
            if os.path.lexists(target) and not _is_same(self[name], target):
                problems.append(Problem(str(target), f'another image than {file}', 'another --out'))
        return problems


def _is_same(image: Path | bytes, target: Path) -> bool:
    if not target.is_file():
        return False
    if isinstance(image, bytes):
        return target.read_bytes() == image
    return target.samefile(image) or filecmp.cmp(target, image, shallow=False)


def _is_long(name: str) -> bool:
    return any(len(os.fsencode(part)) > _LONGEST for part in PurePosixPath(name).parts)


def _long(name: str) -> Problem:
    return Problem(f'{name[:40]}...', f'a name of more than {_LONGEST} bytes', 'a shorter one')


def _require_harmless(name: str) -> None:
    if _is_long(name):
        raise UserError(_long(name))
    path = PurePosixPath(name)
    if path.is_absolute() or '..' in path.parts or '\\' in name or '\0' in name:
        raise UserError(repr(name), 'leads out of the folder', 'the name of an image')
    if path.suffix.lower() not in IMAGE_SUFFIXES:
        raise UserError(repr(name), '', f'an image, {", ".join(IMAGE_SUFFIXES)}')


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
