"""Makes masks of class ids from an export of a labelling tool."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.utils.files import remove_parts
from mmseg_cct.utils.image_files import find_masks, read_mask, suffix_of_masks, write_png
from mmseg_cct.utils.image_lists import image_stem
from mmseg_cct.utils.labels import BACKGROUND, IGNORE_INDEX, is_background
from mmseg_cct.utils.processes import locked_folder

from .class_table import (
    TABLE,
    ClassTable,
    data_folder,
    extended,
    read_table,
    write_table,
)
from .image_names import ImageNames
from .image_pool import ImagePool
from .pictures import size_of, turned
from .rasterize import rasterize, scaled
from .readers import colour_masks, require_reader
from .shapes import AnnotatedImage, Annotations, Colour
from .source import Source, reading


@dataclass
class Imported:
    """What an import did.

    Attributes:
        table: The classes, including those of earlier imports.
        new: Number of masks that did not exist before.
        unchanged: Number of masks that existed and are the same.
        changed: Number of masks that existed and differ.
        confusion: `(256, 256)` number of pixels of changed masks by old and new id.
        pixels: Number of pixels in all masks that existed before.
        bare: Number of images that the export lists without a shape; they get no mask.
        missing: Annotated images whose image file was not found.
        left_out: Number of annotations that are not regions, by kind.
        ignored: Number of regions that the tool marks as ignored.
        failed: A line for each image that could not be imported.
        images: Number of images linked or copied into the data folder.
    """

    table: ClassTable
    new: int = 0
    unchanged: int = 0
    changed: int = 0
    confusion: np.ndarray = field(default_factory=lambda: np.zeros((256, 256), np.int64))
    pixels: int = 0
    bare: int = 0
    missing: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    ignored: int = 0
    failed: list[str] = field(default_factory=list)
    images: int = 0

    @property
    def masks(self) -> int:
        """Number of images that have a mask now."""
        return self.new + self.unchanged + self.changed

    def describe(self) -> str:
        """Describes the import, one line for each fact."""
        counts = (
            ('new masks', self.new),
            ('masks differ from those there', self.changed),
            ('masks as they were', self.unchanged),
            ('images without annotation get no mask', self.bare),
            ('images brought there', self.images),
        )
        lines = [', '.join(f'{number} {what}' for what, number in counts if number) or 'no mask']
        if self.changed:
            lines.append(f'changed: {self._changes()}')
        if self.missing:
            lines.append(
                f'warning: no image for {len(self.missing)} annotated ones: '
                f'{", ".join(self.missing[:3])}{", ..." if len(self.missing) > 3 else ""}'
            )
        if self.ignored:
            lines.append(f'ignored as marked (iscrowd, __ignore__, void): {self.ignored} regions')
        if self.left_out:
            kinds = ', '.join(f'{number} {kind}' for kind, number in self.left_out.most_common())
            lines.append(f'warning: left out, because they are no annotated regions: {kinds}')
        return '\n'.join(lines)

    def require_complete(self, overwrite: bool) -> None:
        """Raises an error that lists what could not be imported, and masks that were kept."""
        problems: list[Problem | UserError] = [UserError(line) for line in self.failed]
        if self.changed and not overwrite:
            kept = f'{self.changed} masks of earlier imports differ and were kept'
            problems.append(Problem('masks', kept, '--overwrite to replace them'))
        raise_problems(problems)

    def _changes(self) -> str:
        """Describes the share of pixels that differ, and the most frequent change of class."""
        moved = self.confusion.copy()
        np.fill_diagonal(moved, 0)
        old, new = np.unravel_index(moved.argmax(), moved.shape)
        names = dict(enumerate(self.table.colours)) | {IGNORE_INDEX: 'ignored'}
        share = moved.sum() / max(self.pixels, 1)
        return (
            f'{share:.1%} of pixels, most: {names.get(int(old), old)} → {names.get(int(new), new)}'
        )


def import_masks(
    source: str | Path,
    out: str | Path,
    *,
    images: str | Path | None = None,
    rest: str | None = None,
    colours: Mapping[str, Colour] | None = None,
    binary: str | None = None,
    rename: Mapping[str, str | None] | None = None,
    mask_suffix: str = '',
    empty: bool = False,
    resize: bool = False,
    overwrite: bool = False,
    copy: bool = False,
    progress: Callable[[Iterable], Iterable] = iter,
) -> Imported:
    """Writes `out/masks` and `out/classes.json` from an export, and links its images into `out`.

    Args:
        source: A file, a folder or a ZIP, in any format that `readers` knows.
        out: A data folder, new or from an earlier import.
        images: Folder of the images; by default `out/images`, or else those in the export.
        rest: What pixels that no shape covers become, 'background' or 'ignore'; by default as in
            the first import.
        colours: For colour masks: the colours by class name.
        binary: For masks of one class: its name.
        rename: New names for the export's classes, None to ignore their pixels. Those of earlier
            imports still apply.
        mask_suffix: For colour masks and masks of one class: what the masks' names add to those of
            their images, including the extension.
        empty: Whether images that the export lists without a shape are all background, unless
            somebody skipped them or drew something that is not a region.
        resize: Whether to scale annotations of images whose size differs.
        overwrite: Whether to replace masks that differ.
        copy: Whether to copy images instead of linking them.
        progress: Wraps the images, to show progress.

    Returns:
        Counts, and what went wrong.

    Raises:
        UserError: If the export, a name or the output folder does not fit.
    """
    out, export = Path(out), Source(source)
    home = data_folder(out)
    table = read_table(home)
    if table is None and (out / 'masks').is_dir() and find_masks(out / 'masks'):
        found = f'holds masks, whose ids have no names without {TABLE}'
        expected = 'that file with {"classes": ["background", …]} by id, or another --out'
        raise UserError(str(out), found, expected)
    rest = rest or (table.rest if table else None)
    annotations = _read(export, colours, binary, mask_suffix, is_strict=rest is None)
    _require_rest(rest, is_needed=colours is None, empty=empty)
    renamed = _all_renamed(table, annotations.classes, rename or {})
    annotations = annotations.renamed(renamed)
    done = Imported(extended(table, annotations.classes, rest, renamed))
    masks_alone = colours is not None or binary is not None
    pool = ImagePool(out, images, None if masks_alone else export)
    names, seen, is_claimed = ImageNames(pool.names), set(), False
    with ExitStack() as held:
        for annotated in progress(annotations.images):
            if not isinstance(annotated, AnnotatedImage):
                done.failed.append(str(annotated))
                continue
            done.left_out.update(map(str, annotated.left_out))
            done.ignored += sum(shape.label is None for shape in annotated.shapes)
            if not (annotated.shapes or (empty and annotated.is_done and not annotated.left_out)):
                done.bare += 1
                continue
            try:
                with reading(annotated.name, 'a labelling tool'):
                    name = names.find(annotated.name)
                    image = pool[name] if name else annotated.data
                    if image is None:
                        done.missing.append(annotated.name)
                        continue
                    mask = _draw(annotated, image, done.table, rest, resize)
                    name = name or pool.add(annotated)
                    if name in seen:
                        raise UserError(name, 'annotated twice', 'each image once')
                    seen.add(name)
            except UserError as error:
                done.failed.append(str(error))
                continue
            if not is_claimed:  # only once there is a mask to write
                held.enter_context(_claimed(home, table))
                write_table(home, done.table)
                is_claimed = True
            try:
                _write(out / 'masks' / f'{name}.png', mask, done, overwrite)
            except UserError as error:
                done.failed.append(str(error))
        if done.masks:
            done.images = pool.bring(copy)
    if not done.masks and done.missing:
        found = f'none of the {len(done.missing)} annotated ones, such as {done.missing[0]}'
        end = suffix_of_masks([image_stem(name) for name in done.missing], pool.names)
        expected = f'--mask-suffix {end}.png' if masks_alone and end else '--images with them'
        done.failed.insert(0, str(Problem(pool.origin, found, expected)))
    elif not done.masks and done.bare:
        problem = Problem(str(export.path), 'no image is annotated', 'a region on one at least')
        done.failed.append(str(problem))
    return done


@contextmanager
def _claimed(home: Path, table: ClassTable | None) -> Iterator[None]:
    """Locks a data folder, whose table is still the one that the import began with."""
    with locked_folder(home, 'another import'):
        if read_table(home) != table:
            found = 'another import changed it meanwhile'
            raise UserError(str(home / TABLE), found, 'the same command again')
        remove_parts(home, '**/')
        yield


def _all_renamed(
    table: ClassTable | None, found: Iterable[str], new: Mapping[str, str | None]
) -> dict[str, str | None]:
    """Adds new class names to those of earlier imports; both apply to later imports."""
    earlier = table.renamed if table else {}
    for name, its_new in new.items():
        if earlier.get(name, '') == its_new:
            continue
        if name not in found:
            expected = f'a class of the export: {", ".join(found)}'
            raise UserError('--rename', repr(name), expected)
        if table and name in table.colours:
            problem = f'{name!r} has masks of earlier imports'
            raise UserError('--rename', problem, 'another --out')
    return {**earlier, **new}


def _draw(
    annotated: AnnotatedImage,
    image: Path | bytes,
    table: ClassTable,
    rest: str | None,
    resize: bool,
) -> np.ndarray:
    """Draws the mask of an image, as the image is shown."""
    background = table.background
    ids = dict(table.ids)
    for shape in annotated.shapes:
        if shape.label is not None and shape.label not in ids:
            if background is None or not is_background(shape.label):
                raise UserError(f'class {shape.label!r}', '', f'one of {", ".join(ids)}')
            ids[shape.label] = ids[background]
    undrawn = ids[background] if rest == BACKGROUND and background else IGNORE_INDEX
    stored, orientation = size_of(image)
    shown = stored[::-1] if orientation > 4 else stored
    size = annotated.size
    if annotated.is_relative or (size not in (None, shown, stored) and resize):
        shapes = [scaled(shape, size, shown) for shape in annotated.shapes]
        return rasterize(shapes, shown, ids, undrawn)
    if size in (None, shown):
        return rasterize(annotated.shapes, shown, ids, undrawn)
    if size == stored:  # annotated as stored, but shown and trained on turned
        return turned(rasterize(annotated.shapes, stored, ids, undrawn), orientation)
    expected = f'{shown[0]}×{shown[1]}, the size of the image, or --resize'
    raise UserError('annotation', f'of {size[0]}×{size[1]} pixels', expected)


def _write(path: Path, mask: np.ndarray, done: Imported, overwrite: bool) -> None:
    """Writes a mask that is new or, with `overwrite`, differs from the existing one."""
    if path.exists():
        earlier = read_mask(path)
        done.pixels += mask.size
        if np.array_equal(earlier, mask):
            done.unchanged += 1
            return
        done.changed += 1
        if earlier.shape == mask.shape:
            pairs = np.minimum(earlier, IGNORE_INDEX).astype(np.int64) * 256 + mask
            done.confusion += np.bincount(pairs.reshape(-1), minlength=256**2).reshape(256, 256)
        if not overwrite:
            return
    else:
        done.new += 1
    palette = np.full((256, 3), 255, np.uint8)
    palette[: len(done.table.colours)] = list(done.table.colours.values())
    write_png(path, Image.fromarray(mask), palette)


def _require_rest(rest: str | None, is_needed: bool, empty: bool) -> None:
    if rest is None and is_needed:
        raise UserError(
            '--rest', 'missing', 'background if every object is drawn, ignore if only some are'
        )
    if empty and rest != BACKGROUND:
        found = f'with --rest {rest} nothing of them would be labelled'
        raise UserError('--empty-is-background', found, '--rest background')


def _read(
    source: Source,
    colours: Mapping[str, Colour] | None,
    binary: str | None,
    suffix: str,
    is_strict: bool,
) -> Annotations:
    if colours is not None:
        return colour_masks.read_colours(source, colours, suffix, is_strict)
    if binary is not None:
        return colour_masks.read_binary(source, binary, suffix)
    reader = require_reader(source)
    if reader is colour_masks:
        colour_masks.ask_for_names(source)
    with reading(str(source.path), reader.TITLE):
        return reader.read(source)
