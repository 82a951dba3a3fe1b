"""Makes masks of class ids from an export of a labelling tool."""

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
from PIL import Image

from mmseg_cct.datasets.files.image_files import find_masks, read_list, write_list
from mmseg_cct.datasets.files.images import read_mask, write_png
from mmseg_cct.datasets.files.labels import BACKGROUND, is_background, means_ignored
from mmseg_cct.datasets.files.layouts import VAL_LIST, is_validation
from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.utils.files import locked_folder, remove_parts
from mmseg_cct.utils.text import counted

from .class_table import TABLE, ClassTable, data_folder, extended, read_table, write_table
from .draw_image import Drawer, ImageNotes
from .image_pool import ImageNames, ImagePool
from .readers import plain_masks, require_reader
from .returned_batch import ReturnedBatch
from .shapes import AnnotatedImage, Annotations, Color
from .source import Source, reading

_NAMED = 10  # images by name


@dataclass
class Imported:
    """The outcome of an import."""

    table: ClassTable  # with the classes of earlier imports
    new: int = 0  # masks that did not exist before
    unchanged: int = 0  # masks that existed and are the same
    changed: int = 0  # masks that existed and differ
    unannotated: int = 0  # images that the export lists without a shape; they get no mask
    missing: list[str] = field(default_factory=list)  # annotated images without a file
    # what is not in the masks as it was drawn, and what differs from earlier ones
    notes: ImageNotes = field(default_factory=lambda: defaultdict(Counter))
    warnings: list[str] = field(default_factory=list)  # lines about the whole import
    failed: list[str] = field(default_factory=list)  # lines about images that are not imported
    validated: set[str] = field(default_factory=set)  # images of a subset for validation
    drawn_ids: set[int] = field(default_factory=set)  # in the masks of this import
    erased_ids: set[int] = field(default_factory=set)  # of earlier masks where these differ
    images: int = 0  # images linked or copied into the data folder
    is_copied: bool = False

    @property
    def masks(self) -> int:
        """Number of images that have a mask now."""
        return self.new + self.unchanged + self.changed

    def describe(self) -> str:
        """Describes the import, one line for each fact."""
        counts = (
            (self.new, 'new mask', ''),
            (self.changed, 'mask', ' unlike those there'),
            (self.unchanged, 'mask', ' as before'),
            (len(self.validated), 'mask', ' to validate on'),
            (self.unannotated, 'image', ' without annotation or mask'),
            (self.images, 'image', f' {"copied" if self.is_copied else "linked"}'),
        )
        facts = [counted(number, noun) + addition for number, noun, addition in counts if number]
        lines = [', '.join(facts) or 'no mask', *(f'warning: {line}' for line in self.warnings)]
        for text, images in self.notes.items():
            names = f'{", ".join(list(images)[:_NAMED])}{", ..." if len(images) > _NAMED else ""}'
            lines.append(f'{text}: {images.total()} in {counted(len(images), "image")}: {names}')
        return '\n'.join(lines)

    def require_complete(self, overwrite: bool) -> None:
        """Raises an error that lists what could not be imported, and masks that were kept."""
        problems: list[Problem | UserError] = [UserError(line) for line in self.failed]
        if self.changed and not overwrite:
            problem = f'{self.changed} masks of earlier imports differ and were kept'
            lost = ', '.join(name for name, n in self.table.ids.items() if n in self.erased_ids)
            hint = f'they show {lost}, which this import lacks: import all classes at once'
            problems.append(Problem(f'{problem}; {hint if lost else "--overwrite replaces them"}'))
        raise_problems(problems)


def import_masks(
    source: str | Path,
    out: str | Path,
    *,
    images: str | Path | None = None,
    undrawn: str | None = None,
    colors: Mapping[str, Color] | None = None,
    rename: Mapping[str, str | None] | None = None,
    mask_suffix: str = '',
    class_masks: Mapping[str, str] | None = None,
    batch: str | Path | None = None,
    empty: bool = False,
    overwrite: bool = False,
    copy: bool = False,
    boxes: str | None = None,
    draw_crowds: bool = False,
    progress: Callable[[Iterable], Iterable] = iter,
) -> Imported:
    """Writes `out/masks` and `out/classes.json` from an export, and links its images into `out`.

    Args:
        source: A file, a folder or a ZIP, in any format that `readers` knows.
        out: A data folder, new or from an earlier import.
        images: Folder of the images; by default `out/images`, or else those in the export.
        undrawn: What pixels that no shape covers become, 'background' or 'ignore'; by default as in
            the first import.
        colors: For colour masks: the colours by class name.
        rename: New names for the export's classes, None to ignore their pixels. Those of earlier
            imports still apply.
        mask_suffix: For colour masks: what their names add to those of their images, including the
            extension.
        class_masks: For masks of one class each: their names by class, with `*` for the image's.
        batch: A batch of `next_batch` whose corrections these are: what was skipped or is as it was
            predicted gets no mask.
        empty: Whether images that the export lists without a shape are all background, unless
            somebody skipped them or drew something that is not a region.
        overwrite: Whether to replace masks that differ.
        copy: Whether to copy images instead of linking them.
        boxes: 'fill' if all boxes are regions; 'ignore' if they bound other shapes, so that only
            what else is in them is ignored. By default, an error in images that also hold other
            shapes of the class; COCO's boxes without a polygon are ignored.
        draw_crowds: Whether COCO's regions with `iscrowd` are regions; else they are ignored.
        progress: Wraps the images, to show progress.

    Returns:
        Counts, and what went wrong.

    Raises:
        UserError: If the export, a name or the output folder does not fit.

    Examples:
        >>> import json, tempfile
        >>> from PIL import Image
        >>> temporary = tempfile.TemporaryDirectory()
        >>> export, data = Path(temporary.name, 'export'), Path(temporary.name, 'data')
        >>> export.mkdir()
        >>> Image.new('RGB', (8, 6)).save(export / 'photo.png')
        >>> square = dict(label='car', points=[[1, 1], [4, 1], [4, 3], [1, 3]])
        >>> labelme = dict(imagePath='photo.png', imageWidth=8, imageHeight=6, shapes=[square])
        >>> _ = (export / 'photo.json').write_text(json.dumps(labelme))
        >>> imported = import_masks(export, data, undrawn='background')
        >>> imported.describe()
        '1 new mask, 1 image linked'
        >>> imported.table.ids, int(read_mask(data / 'masks/photo.png').sum())
        ({'background': 0, 'car': 1}, 6)
    """
    out, export = Path(out), Source(source)
    home = data_folder(out)
    table = read_table(home) or ClassTable()
    earlier_masks = _earlier_masks(out, table)
    undrawn = undrawn or table.undrawn
    annotations = _annotations(export, colors, mask_suffix, class_masks, undrawn)
    if empty and undrawn != BACKGROUND:
        raise UserError(f'--empty-is-background goes with --rest background, not {undrawn}')
    new_table = _with_classes(table, annotations.classes, undrawn, rename or {})
    imported = Imported(new_table, is_copied=copy)
    if earlier_masks and (added := list(new_table.colors)[len(table.colors) :]):
        new = ', '.join(f'{name} (id {new_table.ids[name]})' for name in added)
        earlier = f'the {len(earlier_masks)} masks of earlier imports do not know them'
        effect = 'what shows them there is ignored or another class'
        imported.warnings.append(f'new classes {new}: {earlier}; {effect}')

    pool = ImagePool(out, images, export)
    imported.failed += map(str, export.damaged)
    drawer = Drawer(imported.table, undrawn, boxes, draw_crowds, empty, imported.notes)
    returned = ReturnedBatch(Path(batch)) if batch else None
    drawn = _drawn(progress(annotations.images), pool, drawer, out / 'masks', imported, returned)
    if first := next(drawn, None):  # the folder is ours once there is a mask to write
        with locked_folder(home, 'another import'):
            # The ids were chosen before there was a lock, since a failed import makes no folder.
            if (read_table(home) or ClassTable()) != table:
                raise UserError(f'{home / TABLE}: another import changed it; run this one again')
            remove_parts(home, '**/')
            # The names first: masks without them would be ids that nobody can read
            write_table(home, imported.table)
            for name, mask in chain([first], drawn):
                _write(out / 'masks' / f'{name}.png', name, mask, imported, overwrite)
            # Last: images whose masks are still missing would count as unlabelled ones
            imported.images = pool.link(copy) if imported.masks else 0
            if imported.validated and home == out:
                listed = read_list(home / VAL_LIST) if (home / VAL_LIST).exists() else []
                write_list(home / VAL_LIST, sorted({*listed, *imported.validated}))
    _note_missing(imported, export, pool, colors is not None)
    ids, renamed = imported.table.ids, imported.table.renamed
    new_names = {renamed.get(name, name) for name in annotations.classes}
    named = {index for name, index in ids.items() if name in new_names}
    imported.erased_ids -= named | imported.drawn_ids
    added = list(ids)[len(table.colors) :]
    lacking = [name for name in added if ids[name] in named - imported.drawn_ids]
    if lacking and imported.masks:
        remedy = f'--rename {shlex.join(f"{n}=" for n in lacking)} in another --out omits them'
        imported.warnings.append(f'classes without an annotation: {", ".join(lacking)}; {remedy}')
    return imported


def _earlier_masks(out: Path, table: ClassTable) -> Mapping[str, str]:
    """Finds the masks of earlier imports, whose ids need a table."""
    masks = find_masks(out / 'masks') if (out / 'masks').is_dir() else {}
    if masks and not table.colors:
        problem = f'holds masks, whose ids have no names without {TABLE}'
        expected = 'that file with {"classes": ["background", …]} by id, or another --out'
        raise UserError(str(out), problem, expected)
    return masks


def _annotations(
    export: Source,
    colors: Mapping[str, Color] | None,
    mask_suffix: str,
    class_masks: Mapping[str, str] | None,
    undrawn: str | None,
) -> Annotations:
    """Reads masks of colors or classes if these are named, else what the export's format is."""
    if colors is not None:
        return plain_masks.read_colors(export, colors, mask_suffix, undrawn is None)
    if class_masks is not None:
        annotations = plain_masks.read_classes(export, class_masks)
    else:
        reader = require_reader(export)
        if reader is plain_masks:
            plain_masks.ask_for_names(export)
        annotations = reader.read(export)
    if undrawn is None:
        expected = 'background if every object is drawn, ignore if only some are'
        raise UserError('--rest', 'missing', expected)
    return annotations


def _note_missing(imported: Imported, export: Source, pool: ImagePool, by_color: bool) -> None:
    """Notes annotated images without a file; without any mask, that is what failed."""
    for name in imported.missing:
        imported.notes['annotated images without a file'][name] += 1
    if not imported.masks and (missing := imported.missing):
        problem = f'none of the {len(missing)} annotated ones, such as {missing[0]}'
        expected = '--images with them' + (', or --mask-suffix' if by_color else '')
        imported.failed.insert(0, str(Problem(pool.origin, problem, expected)))
    elif not imported.masks and imported.unannotated:
        imported.failed.append(f'{export.path}: no image is annotated')


def _drawn(
    images: Iterable[AnnotatedImage | UserError],
    pool: ImagePool,
    drawer: Drawer,
    folder: Path,
    imported: Imported,
    batch: ReturnedBatch | None,
) -> Iterator[tuple[str, np.ndarray]]:
    """Draws images one by one: name and mask; notes those that get none."""
    names, taken = ImageNames(pool.files), dict[str, str]()
    for annotated in images:
        try:
            if isinstance(annotated, UserError):
                raise annotated  # noted below, like those that drawing finds
            with reading(annotated.location):
                name = names.find(annotated.name)
                if name is None and next(iter(annotated.parts), None):
                    imported.missing.append(annotated.name)
                    continue
                mask = None if name is None else drawer.draw(annotated, pool[name])
                if name in taken and mask is not None:
                    problem = f'annotated twice, in {taken[name]} and {annotated.location}'
                    raise UserError(name, problem, 'one annotation an image')
        except UserError as error:  # the others go on
            imported.failed.append(str(error))
            continue
        if name and mask is not None:
            taken[name] = annotated.location
            if objection := batch.objection(name, mask) if batch else '':
                imported.notes[objection][annotated.name] += 1
            else:
                imported.drawn_ids.update(np.unique(mask).tolist())
                if is_validation(re.split(r'[/_.-]', annotated.subset)):
                    imported.validated.add(name)
                yield name, mask
            continue
        imported.unannotated += 1
        if name and (folder / f'{name}.png').exists():
            text = 'images without a shape, whose masks are of earlier imports and stay'
            imported.notes[text][annotated.name] += 1


def _write(path: Path, name: str, mask: np.ndarray, imported: Imported, overwrite: bool) -> None:
    """Writes a mask that is new or, if wanted, replaces an earlier one."""
    earlier = read_mask(path) if path.exists() else None
    if earlier is None:
        imported.new += 1
    elif np.array_equal(earlier, mask):
        imported.unchanged += 1
        return
    else:
        imported.changed += 1
        treatment = 'replaced' if overwrite else 'kept'
        is_other = np.not_equal(earlier, mask if earlier.shape == mask.shape else -1)
        imported.erased_ids.update(np.unique(earlier[is_other]).tolist())
        text = f'pixels unlike those of earlier masks, {treatment}'
        imported.notes[text][name] += int(is_other.sum())
        if not overwrite:
            return
    palette = np.full((256, 3), 255, np.uint8)
    colors = [*imported.table.colors.values()]
    palette[: len(colors)] = np.reshape(colors, (-1, 3))  # none if all is ignored
    write_png(path, Image.fromarray(mask), palette)


def _with_classes(
    table: ClassTable,
    classes: Mapping[str, Color | None],
    undrawn: str | None,
    rename: Mapping[str, str | None],
) -> ClassTable:
    """Adds an export's classes to a table, under new names and those of earlier imports.

    Names such as `void`, or like another but for case and blanks, need a decision, by a new name or
    an earlier import.
    """
    for name, new_name in rename.items():
        if table.renamed.get(name, '') == new_name:
            continue
        if name not in classes:
            raise UserError('--rename', repr(name), f'a class of the export: {", ".join(classes)}')
        # Those masks hold its old id
        if table.renamed.get(name, name) in table.colors:
            raise UserError('--rename', f'{name!r} has masks of earlier imports', 'another --out')
    renamed = {**table.renamed, **rename}
    decided = {*renamed, *table.colors}
    if void := [name for name in classes if means_ignored(name) and name not in decided]:
        ignored = ' '.join(f'{name}=' for name in void)
        kept = ' '.join(f'{name}={name}' for name in void)
        expected = f'--rename {ignored} to ignore its pixels, or --rename {kept} to train it'
        raise UserError(f'class {void[0]}', 'named like pixels without a label', expected)
    spellings = dict[str, str]()
    for name in (*table.colors, *classes):
        twin = spellings.setdefault(''.join(name.lower().split()), name)
        if twin != name and not is_background(name) and {name, twin}.isdisjoint(renamed):
            one, both = (shlex.quote(f'{name}={new}') for new in (twin, name))
            expected = f'--rename {one} to make them one, or {both} to keep both'
            raise UserError(f'class {name}', f'{twin} but for case and blanks', expected)
    new_classes: dict[str, Color | None] = {}
    for name, color in classes.items():
        if (new_name := renamed.get(name, name)) is not None:  # several may get the same name
            new_classes.setdefault(new_name, color)
    return extended(table, new_classes, undrawn, renamed)
