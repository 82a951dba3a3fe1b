"""The images of an import, and how they come into the data folder."""

import filecmp
import os
import shutil
from pathlib import Path, PurePosixPath

from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.utils.files import part_of, require_outside, write_atomic
from mmseg_cct.utils.image_files import IMAGE_SUFFIXES, find_files, find_images, image_stem

from .shapes import AnnotatedImage
from .source import Source

_LONGEST = 255  # bytes of a file's name


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
