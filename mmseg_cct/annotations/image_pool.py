"""The images of an import: what tools call them, and how they come into the data folder."""

import filecmp
import os
import re
import shutil
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath

from mmseg_cct.datasets.files.image_files import (
    IMAGE_SUFFIXES,
    describe_left_out,
    find_files,
    find_images,
    image_stem,
)
from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.utils.files import part_of, require_outside, write_atomic
from mmseg_cct.utils.log import warn

from .source import Source

_UPLOAD = re.compile(r'^[0-9a-f]{8}-')  # what Label Studio puts before the name of an upload

NamesByEnd = dict[str, list[tuple[list[str], str]]]  # parts of a path, and the image's name


class ImagePool:
    """Images by name, from the folder `images`, else from `out/images`, else from the `export`.

    Pictures that the export's reader takes for masks are no images.

    Raises:
        UserError: If the data folder has another image of the same name.
    """

    def __init__(self, out: Path, images: str | Path | None, export: Source) -> None:
        self.folder = out / 'images'
        # by path below the folder, without the extension; text is a name in a ZIP
        self.files: dict[str, Path | str] = {}
        self._export = export
        # where they come to lie; none if they lie there already
        self._targets: dict[str, Path] = {}
        imported: dict[str, Path] = {}
        if self.folder.is_dir():
            files = find_files(self.folder)
            if any(file.lower().endswith(IMAGE_SUFFIXES) for file in files):
                imported = self._images(self.folder)
        exported = {} if images else export.images()
        if images and not (self.folder.is_dir() and self.folder.samefile(images)):
            require_outside(out, [Path(images)], '--out')
            masks = {file.resolve() for name in export.masks if (file := export.file(name))}
            self.files |= self._images(images, masks)
        elif exported and imported.keys() < exported.keys():  # a killed import left some out
            if export.file(''):
                require_outside(out, [export.path], '--out')
            self.files |= {name: export.file(file) or file for name, file in exported.items()}
        else:
            self.files |= imported
            return
        for name, path in self.files.items():
            self._targets[name] = self.folder / f'{name}{PurePosixPath(str(path)).suffix}'
        raise_problems(self._conflicts())

    def _images(self, folder: str | Path, without: Collection[Path] = ()) -> dict[str, Path]:
        left_out: list[str] = []
        images = find_images(folder, without=without, left_out=left_out)
        if left_out:
            warn(describe_left_out(folder, left_out))
        return {name: Path(path) for name, path in images.items()}

    def __getitem__(self, name: str) -> Path | bytes:
        file = self.files[name]
        return self._export.read(file) if isinstance(file, str) else file

    def link(self, copy: bool) -> int:
        """Links or copies all images into the data folder; returns how many were new there."""
        num_linked = 0
        for name, target in self._targets.items():
            if target.exists():
                continue
            num_linked += 1
            target.parent.mkdir(parents=True, exist_ok=True)
            content = self[name]
            if isinstance(content, bytes):
                write_atomic(target, content)
            elif copy:
                with part_of(target) as part:
                    shutil.copy2(content, part)
            else:
                # of the file itself: a link to a link breaks when that is moved
                target.symlink_to(content.resolve())
        return num_linked

    def _conflicts(self) -> Iterable[Problem]:
        for name, target in self._targets.items():
            file = self.files[name]
            path = PurePosixPath(str(file))
            # Only a ZIP can name a file outside its folder
            leads_out = path.is_absolute() or '..' in path.parts or '\\' in str(file)
            if isinstance(file, str) and leads_out:
                yield Problem(repr(file), 'leads out of the folder', 'the name of an image')
            elif os.path.lexists(target) and not self._is_same(name, target):
                yield Problem(str(target), f'another image than {file}', 'another --out')

    def _is_same(self, name: str, target: Path) -> bool:
        image = self[name]
        if not target.is_file():
            return False
        if isinstance(image, bytes):
            return target.read_bytes() == image
        return target.samefile(image) or filecmp.cmp(target, image, shallow=False)


def _uploaded(name: str) -> str:
    return re.sub(r'[^-\w.]', '', name.replace(' ', '_'))


class ImageNames:
    """Images by name (path without extension); a tool's path may have more or fewer folders."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_end: NamesByEnd = defaultdict(list)
        self._by_upload: NamesByEnd = defaultdict(list)
        for name in names:
            # Tools compose accents; macOS may store `ä` as `a` and its dots.
            parts = unicodedata.normalize('NFC', name).split('/')
            self._by_end[parts[-1]].append((parts, name))
            self._by_upload[_uploaded(parts[-1])].append(([_uploaded(parts[-1])], name))

    def find(self, tool_name: str) -> str | None:
        """Finds the image by a tool's name for it, or None.

        One path must be the end of the other: `a/1.jpg` is not `b/1.jpg`. Among several matches the
        one with the most folders in common counts; a tie is an error. An upload to Label Studio has
        lost its folders, its brackets, and its spaces to `_`.
        """
        path = unicodedata.normalize('NFC', image_stem(tool_name.replace('\\', '/')))  # of Windows
        parts = [part for part in path.split('/') if part not in ('', '.')]
        if not parts:
            return None
        if name := self._find(parts, self._by_end):
            return name
        if not _UPLOAD.match(parts[-1]):
            return None
        return self._find([_uploaded(_UPLOAD.sub('', parts[-1]))], self._by_upload)

    def _find(self, parts: list[str], images: NamesByEnd) -> str | None:
        matches: dict[tuple[int, bool], list[str]] = defaultdict(list)  # by folders in common
        for image_parts, name in images.get(parts[-1], ()):
            common = min(len(image_parts), len(parts))
            if image_parts[-common:] == parts[-common:]:
                matches[common, image_parts == parts].append(name)
        if not matches:
            return None
        best, *rivals = matches[max(matches)]
        if rivals:
            problem = f'may be {best} or {rivals[0]}'
            raise UserError('/'.join(parts), problem, 'a name with the folder in it')
        return best
