"""Makes masks of class ids from an export of a labelling tool."""

import re
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
from mmseg_cct.utils.labels import BACKGROUND, IGNORE_INDEX, means_ignored
from mmseg_cct.utils.processes import locked_folder

from .class_table import (
    TABLE,
    ClassTable,
    data_folder,
    extended,
    read_table,
    write_table,
)
from .consequences import Consequences
from .draw_image import Drawer
from .image_names import ImageNames
from .image_pool import ImagePool
from .readers import binary_masks, colour_masks, require_reader
from .shapes import AnnotatedImage, Annotations, Colour
from .source import Source, reading

_VALUE = re.compile(r'-?\d+')  # a grey value in place of a class


@dataclass
class Imported:
    """The outcome of an import.

    Attributes:
        table: The classes, including those of earlier imports.
        new: Number of masks that did not exist before.
        unchanged: Number of masks that existed and are the same.
        changed: Number of masks that existed and differ.
        confusion: `(256, 256)` number of pixels of changed masks by old and new id.
        pixels: Number of pixels in all masks that existed before.
        bare: Number of images that the export lists without a shape; they get no mask.
        merged: Number of masks that existed and got one more class.
        earlier: Number of masks that existed before.
        added: Ids of classes by name that the table did not have before.
        missing: Annotated images whose image file was not found.
        told: What is not in the masks as it was drawn.
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
    merged: int = 0
    earlier: int = 0
    added: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    told: Consequences = field(default_factory=Consequences)
    failed: list[str] = field(default_factory=list)
    images: int = 0

    @property
    def masks(self) -> int:
        """Number of images that have a mask now."""
        return self.new + self.unchanged + self.changed + self.merged

    def describe(self) -> str:
        """Describes the import, one line for each fact."""
        counts = (
            ('new masks', self.new),
            ('masks differ from those there', self.changed),
            ('masks got one more class', self.merged),
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
        if self.added and self.earlier:
            named = ', '.join(f'{name} (id {index})' for name, index in self.added.items())
            lines.append(
                f'warning: new classes {named}: the {self.earlier} masks of earlier imports do not '
                'know them; what shows them there is ignored or another class'
            )
        if table := self.told.describe():
            lines.append(table)
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
    fill_boxes: bool = False,
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
        fill_boxes: Whether boxes are regions that bound other shapes, or have no polygon in COCO or
            YOLO.
        progress: Wraps the images, to show progress.

    Returns:
        Counts, and what went wrong.

    Raises:
        UserError: If the export, a name or the output folder does not fit.

    Example:
        >>> import json, tempfile
        >>> from PIL import Image
        >>> export, data = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
        >>> Image.new('RGB', (8, 6)).save(export / 'photo.png')
        >>> square = dict(label='car', points=[[1, 1], [4, 1], [4, 3], [1, 3]])
        >>> labelme = dict(imagePath='photo.png', imageWidth=8, imageHeight=6, shapes=[square])
        >>> _ = (export / 'photo.json').write_text(json.dumps(labelme))
        >>> done = import_masks(export, data, rest='background')
        >>> done.describe()
        '1 new masks, 1 images brought there'
        >>> done.table.ids, int(read_mask(data / 'masks/photo.png').sum())
        ({'background': 0, 'car': 1}, 6)
    """
    out, export = Path(out), Source(source)
    home = data_folder(out)
    table = read_table(home)
    if table is None and (out / 'masks').is_dir() and find_masks(out / 'masks'):
        found = f'holds masks, whose ids have no names without {TABLE}'
        expected = 'that file with {"classes": ["background", …]} by id, or another --out'
        raise UserError(str(out), found, expected)
    rest = rest or (table.rest if table else None)
    values = [name for name in {**_earlier(table), **(rename or {})} if _VALUE.fullmatch(name)]
    if colours is not None:
        annotations = colour_masks.read(export, colours, mask_suffix, rest is None, values)
    elif binary is not None:
        annotations = binary_masks.read(export, binary, mask_suffix, values)
    else:
        annotations = _read(export)
    _require_rest(rest, is_needed=colours is None, empty=empty)
    renamed = _all_renamed(table, annotations.classes, rename or {})
    _require_meant(annotations.classes, renamed, table)
    annotations = annotations.renamed(renamed)
    done = Imported(extended(table, annotations.classes, rest, renamed))
    if table:
        done.added = {name: n for name, n in done.table.ids.items() if name not in table.colours}
        done.earlier = len(find_masks(out / 'masks')) if (out / 'masks').is_dir() else 0
    masks_alone = colours is not None or binary is not None
    pool = ImagePool(out, images, export, masks_alone)
    done.failed += map(str, pool.refused)
    drawer = Drawer(done.table, rest, resize, fill_boxes, done.told)
    one_class = done.table.ids.get(renamed.get(binary, binary) or '') if binary else None
    names, seen, is_claimed = ImageNames(pool.names), set(), False
    with ExitStack() as held:
        for annotated in progress(annotations.images):
            if not isinstance(annotated, AnnotatedImage):
                done.failed.append(str(annotated))
                continue
            try:
                with reading(annotated.name, 'a labelling tool'):
                    if fill_boxes:
                        annotated = annotated.with_filled_boxes()
                    is_empty = annotated.is_done and not annotated.left_out
                    if not (annotated.shapes or (empty and is_empty)):
                        done.bare += 1
                        drawer.tell(annotated, annotated.left_out)
                        continue
                    name = names.find(annotated.name)
                    image = pool[name] if name else annotated.data
                    if image is None:
                        done.missing.append(annotated.name)
                        continue
                    mask = drawer.draw(annotated, image)
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
                path = out / 'masks' / f'{name}.png'
                if one_class is not None and path.exists():
                    mask = _merged(path, mask, one_class, drawer.undrawn, done)
                _write(path, mask, done, overwrite)
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
    earlier = _earlier(table)
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


def _merged(
    path: Path, mask: np.ndarray, of_class: int, undrawn: int, done: Imported
) -> np.ndarray:
    """Merges a mask of one class into an earlier mask; writes it there if that lacks the class."""
    earlier = read_mask(path)
    if earlier.shape != mask.shape:
        return mask
    is_drawn = mask != undrawn
    rest = np.where(earlier == of_class, undrawn, earlier)
    merged = np.where(is_drawn, mask, rest).astype(np.uint8)
    if of_class not in earlier and not np.array_equal(merged, earlier):
        covered = is_drawn & (earlier != undrawn) & (earlier != IGNORE_INDEX)
        what = 'pixels of other classes under the class of these masks'
        done.told.add(what, 'that class', path.stem, int(covered.sum()), mask.size)
        _save(path, merged, done.table)
        done.merged += 1
        done.unchanged -= 1  # as `_write` will find it
    return merged


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
    _save(path, mask, done.table)


def _save(path: Path, mask: np.ndarray, table: ClassTable) -> None:
    palette = np.full((256, 3), 255, np.uint8)
    palette[: len(table.colours)] = list(table.colours.values())
    write_png(path, Image.fromarray(mask), palette)


def _earlier(table: ClassTable | None) -> Mapping[str, str | None]:
    return table.renamed if table else {}


def _require_meant(
    found: Iterable[str], renamed: Mapping[str, str | None], table: ClassTable | None
) -> None:
    """Asks whether classes are meant that are named like pixels without a label."""
    known = {**renamed, **(table.colours if table else {})}
    if asked := [name for name in found if means_ignored(name) and name not in known]:
        ignored, kept = (
            ' '.join(f'{name}={new}' for name, new in zip(asked, news))
            for news in ([''] * len(asked), asked)
        )
        expected = f'--rename {ignored} to ignore its pixels, or --rename {kept} to train it'
        raise UserError(f'class {asked[0]}', 'named like pixels without a label', expected)


def _require_rest(rest: str | None, is_needed: bool, empty: bool) -> None:
    if rest is None and is_needed:
        raise UserError(
            '--rest',
            'missing',
            'background if every object is drawn, ignore if only some are',
        )
    if empty and rest != BACKGROUND:
        found = f'with --rest {rest} nothing of them would be labelled'
        raise UserError('--empty-is-background', found, '--rest background')


def _read(source: Source) -> Annotations:
    reader = require_reader(source)
    if reader is colour_masks:
        colour_masks.ask_for_names(source)
    with reading(str(source.path), reader.TITLE):
        return reader.read(source)
