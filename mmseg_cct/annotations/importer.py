"""Makes masks of class ids from an export of a labelling tool: read, draw, write."""

import json
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from mmseg_cct.datasets.files.image_files import (
    VAL_LIST,
    find_masks,
    image_stem,
    is_validation,
    read_list,
    write_list,
)
from mmseg_cct.datasets.files.images import read_mask, write_png
from mmseg_cct.datasets.files.labels import BACKGROUND, IGNORE_INDEX, is_background, means_ignored
from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.utils.files import locked_folder, read_utf8, remove_parts
from mmseg_cct.utils.text import counted

from .class_table import TABLE, ClassTable, data_folder, extended, read_table, write_table
from .drawing import Drawer
from .image_pool import ImageNames, ImagePool
from .readers import plain_masks, require_reader
from .shapes import Annotations, Color
from .source import Source, reading

PREDICTED = 'predicted'  # in a batch, the folder of the masks that an untouched export gives
MARKS = 'marks.json'  # in a batch, `done` or `skip` by image, as the review page saves it
_NAMED = 10  # images by name


@dataclass(frozen=True)
class ImportOptions:
    """How an export becomes masks."""

    # folder of the images; else `out/images`, or else those in the export
    images: str | Path | None = None
    # what pixels that no shape covers become, 'background' or 'ignore'; else as in the first import
    undrawn: str | None = None
    # of masks of colours: the colours by class name
    colors: Mapping[str, Color] | None = None
    # of masks of colours: what their names add to those of their images, with the extension
    mask_suffix: str = ''
    # of masks of one class each: their names by class, with `*` for the image's
    class_masks: Mapping[str, str] | None = None
    # new names for the export's classes, None to ignore their pixels; those of earlier imports
    # still apply
    rename: Mapping[str, str | None] = field(default_factory=dict)
    # a batch of `next_batch` whose corrections these are: what was skipped or is as it was
    # predicted gets no mask
    batch: str | Path | None = None
    # whether images that the export lists without a shape are all background, unless somebody
    # skipped them or drew something that is no region
    empty: bool = False
    # 'fill' if all boxes are regions, 'ignore' if they bound other shapes, so that only what else
    # is in them is ignored; else an error in images that also hold other shapes of the class, and
    # COCO's boxes without a polygon are ignored
    boxes: str | None = None
    draw_crowds: bool = False  # whether COCO's regions with `iscrowd` are regions; else ignored
    overwrite: bool = False  # whether to replace masks that differ
    copy: bool = False  # whether to copy images instead of linking them


class ReadExport(NamedTuple):
    """An export beside the data folder that it goes to."""

    source: Source
    annotations: Annotations
    images: ImagePool
    earlier_table: ClassTable
    num_earlier: int  # masks in the data folder
    table: ClassTable  # with the classes of the export
    undrawn: str | None


@dataclass
class DrawnImage:
    """What became of an annotated image; without a mask, the other fields say why."""

    tool_name: str
    name: str | None = None  # of the image's file, without extension
    mask: np.ndarray | None = None  # class ids (H, W) uint8
    is_missing: bool = False  # whether it has no file
    is_unannotated: bool = False
    is_validation: bool = False
    error: str = ''
    # what is not in the mask as it was drawn, and how often
    notes: Counter[str] = field(default_factory=Counter)


@dataclass
class Imported:
    """The outcome of an import."""

    table: ClassTable  # with the classes of earlier imports
    new: int = 0  # masks that did not exist before
    unchanged: int = 0  # masks that existed and are the same
    changed: int = 0  # masks that existed and differ
    unannotated: int = 0  # images that the export lists without a shape; they get no mask
    missing: list[str] = field(default_factory=list)  # annotated images without a file
    # what is not in the masks as it was drawn or differs from earlier ones, how often by image
    notes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
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
        if self.missing:
            problem = f'{counted(len(self.missing), "image")} without a file, no mask of them'
            expected = '--images with all that are drawn, or --mask-suffix with the end of a mask'
            problems.append(Problem(self.missing[0], problem, expected))
        raise_problems(problems)


def import_masks(
    source: str | Path,
    out: str | Path,
    options: ImportOptions = ImportOptions(),
    progress: Callable[[Iterable], Iterable] = iter,
) -> Imported:
    """Writes `out/masks` and `out/classes.json` from an export, and links its images into `out`.

    1. The export is read as far as its classes, whose ids go on from those of earlier imports.
    2. Its images are drawn one by one, as they are written.
    3. The masks are written, and the images linked once all masks are there.

    Args:
        source: A file, a folder or a ZIP, in any format that `readers` knows.
        out: A data folder, new or from an earlier import.
        options: How the export becomes masks.
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
        >>> imported = import_masks(export, data, ImportOptions(undrawn='background'))
        >>> imported.describe()
        '1 new mask, 1 image linked'
        >>> imported.table.ids, int(read_mask(data / 'masks/photo.png').sum())
        ({'background': 0, 'car': 1}, 6)
    """
    export = read_export(source, Path(out), options)
    drawn_images = draw_masks(export, options, progress)
    return write_masks(drawn_images, export, Path(out), options)


def read_export(source: str | Path, out: Path, options: ImportOptions) -> ReadExport:
    """Reads the classes of an export, and finds its images and those of the data folder.

    Raises:
        UserError: If the format is unknown, classes need a decision, or the folder does not fit.
    """
    export = Source(source)
    earlier_table = read_table(data_folder(out)) or ClassTable()
    earlier_masks = find_masks(out / 'masks') if (out / 'masks').is_dir() else {}
    if earlier_masks and not earlier_table.colors:
        problem = f'holds masks, whose ids have no names without {TABLE}'
        expected = 'that file with {"classes": ["background", …]} by id, or another --out'
        raise UserError(str(out), problem, expected)
    undrawn = options.undrawn or earlier_table.undrawn
    if options.colors is not None:
        annotations = plain_masks.read_colors(
            export, options.colors, options.mask_suffix, is_strict=undrawn is None
        )
    elif options.class_masks is not None:
        annotations = plain_masks.read_classes(export, options.class_masks)
    elif plain_masks.are_ids(export, [*earlier_table.colors.values()], options.mask_suffix):
        classes = dict(enumerate(earlier_table.colors))
        annotations = plain_masks.read_ids(export, classes, options.mask_suffix)
    else:
        annotations = require_reader(export).read(export)
    if undrawn is None and not annotations.is_undrawn_known:
        expected = 'background if every object is drawn, ignore if only some are'
        raise UserError('--rest', 'missing', expected)
    if options.empty and undrawn != BACKGROUND:
        raise UserError(f'--empty-is-background goes with --rest background, not {undrawn}')
    table = _with_classes(earlier_table, annotations.classes, undrawn, options.rename)
    images = ImagePool(out, options.images, export)
    num_earlier = len(earlier_masks)
    return ReadExport(export, annotations, images, earlier_table, num_earlier, table, undrawn)


def _with_classes(
    table: ClassTable,
    classes: Mapping[str, Color | None],
    undrawn: str | None,
    rename: Mapping[str, str | None],
) -> ClassTable:
    """Adds an export's classes to a table, under new names and those of earlier imports.

    Names such as `void` need a decision, by a new name or an earlier import.
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
    for name in classes:
        if means_ignored(name) and name not in renamed and name not in table.colors:
            expected = f'--rename {name}= to ignore its pixels, or {name}={name} to train it'
            raise UserError(f'class {name}', 'named like pixels without a label', expected)
    new_classes: dict[str, Color | None] = {}
    for name, color in classes.items():
        if (new_name := renamed.get(name, name)) is not None:  # several may get the same name
            new_classes.setdefault(new_name, color)
    return extended(table, new_classes, undrawn, renamed)


def draw_masks(
    export: ReadExport, options: ImportOptions, progress: Callable[[Iterable], Iterable] = iter
) -> Iterator[DrawnImage]:
    """Draws the images of an export one by one; an error of one is in its result."""
    drawer = Drawer(export.table, export.undrawn, options.boxes, options.draw_crowds, options.empty)
    names = ImageNames(export.images.files)
    undrawn = set[int]()  # ids that become 255 although nobody has changed anything
    if export.undrawn != BACKGROUND and options.colors is None:
        undrawn = {index for name, index in export.table.ids.items() if is_background(name)}
    batch = ReturnedBatch(Path(options.batch), undrawn) if options.batch else None
    locations: dict[str, str] = {}  # of the masks, by image
    for annotated in progress(export.annotations.images):
        if isinstance(annotated, UserError):
            yield DrawnImage('', error=str(annotated))
            continue
        drawn = DrawnImage(annotated.name)
        drawn.is_validation = is_validation(re.split(r'[/_.-]', annotated.subset))
        try:
            with reading(annotated.location):
                name = drawn.name = names.find(annotated.name)
                if name is None:
                    drawn.is_missing = next(iter(annotated.parts), None) is not None
                    drawn.is_unannotated = not drawn.is_missing
                elif (mask := drawer.draw(annotated, export.images[name], drawn.notes)) is None:
                    drawn.is_unannotated = True
                elif name in locations:
                    problem = f'annotated twice, in {locations[name]} and {annotated.location}'
                    raise UserError(name, problem, 'one annotation an image')
                else:
                    locations[name] = annotated.location
                    objection = batch.objection(name, mask) if batch else ''
                    if objection:
                        drawn.notes[objection] += 1
                    else:
                        drawn.mask = mask
        except UserError as error:  # the others go on
            drawn.error = str(error)
        yield drawn


class ReturnedBatch:
    """A batch whose corrections are imported: tells which of its masks are no labels."""

    def __init__(self, folder: Path, undrawn: Collection[int] = ()) -> None:
        self._predicted, self._undrawn = find_masks(folder / PREDICTED), [*undrawn]
        self._marks: dict[str, str] = {}
        if (marks := folder / MARKS).exists():
            with reading(str(marks)):
                content = json.loads(read_utf8(marks, 'what the review page saves'))
                self._marks = {image_stem(name): mark for name, mark in content.items()}
        self._names = ImageNames(self._predicted or self._marks)  # a first batch predicts nothing

    def objection(self, name: str, mask: np.ndarray) -> str:
        """Says why the mask `(H, W)` of an image is no label; empty if it is one."""
        if (batch_name := self._names.find(name)) is None:
            return ''
        mark = self._marks.get(batch_name)
        if mark == 'skip':
            return 'images marked skip, unlabelled'
        if mark == 'done' or batch_name not in self._predicted:
            return ''
        predicted = read_mask(self._predicted[batch_name])
        is_undrawn = (mask == IGNORE_INDEX) & np.isin(predicted, self._undrawn)
        if predicted.shape != mask.shape or not np.all((predicted == mask) | is_undrawn):
            return ''
        return f'masks as predicted, unlabelled unless {MARKS} of the batch says done'


def write_masks(
    drawn_images: Iterable[DrawnImage], export: ReadExport, out: Path, options: ImportOptions
) -> Imported:
    """Writes masks as they are drawn, then brings the images into the data folder.

    Raises:
        UserError: If another import writes there, or has changed the classes meanwhile.
    """
    imported = Imported(export.table, is_copied=options.copy)
    imported.failed += map(str, export.source.damaged)
    home = data_folder(out)
    with ExitStack() as folder:
        for drawn in drawn_images:
            _count(drawn, imported, out)
            if drawn.mask is None or drawn.name is None:
                continue
            if not imported.masks:  # the folder is ours once there is a mask to write
                folder.enter_context(_claimed(home, export))
            path = out / 'masks' / f'{drawn.name}.png'
            _write_mask(path, drawn.name, drawn.mask, imported, options.overwrite)
        # Last: images whose masks are still missing would count as unlabelled ones
        imported.images = export.images.link(options.copy) if imported.masks else 0
        if imported.validated and home == out:
            listed = read_list(home / VAL_LIST) if (home / VAL_LIST).exists() else []
            write_list(home / VAL_LIST, sorted({*listed, *imported.validated}))
    if not imported.masks and not imported.missing and imported.unannotated:
        imported.failed.append(f'{export.source.path}: no image is annotated')
    _warn_of_classes(imported, export)
    return imported


@contextmanager
def _claimed(home: Path, export: ReadExport) -> Iterator[None]:
    """Locks the data folder and writes its table: masks without names would be of no use."""
    with locked_folder(home, 'another import'):
        # The ids were chosen before there was a lock, since a failed import makes no folder.
        if (read_table(home) or ClassTable()) != export.earlier_table:
            raise UserError(f'{home / TABLE}: another import changed it; run this one again')
        remove_parts(home, '**/')
        write_table(home, export.table)
        yield


def _count(drawn: DrawnImage, imported: Imported, out: Path) -> None:
    notes = drawn.notes
    if drawn.error:
        imported.failed.append(drawn.error)
    elif drawn.is_missing:
        imported.missing.append(drawn.tool_name)
        notes['annotated images without a file'] += 1
    elif drawn.is_unannotated:
        imported.unannotated += 1
        if drawn.name and (out / 'masks' / f'{drawn.name}.png').exists():
            notes['images without a shape, whose masks are of earlier imports and stay'] += 1
    elif drawn.mask is not None:
        imported.drawn_ids.update(np.unique(drawn.mask).tolist())
        if drawn.is_validation:
            imported.validated.add(str(drawn.name))
    for text, number in notes.items():
        if number:
            imported.notes[text][drawn.tool_name] += number


def _write_mask(
    path: Path, name: str, mask: np.ndarray, imported: Imported, overwrite: bool
) -> None:
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


def _warn_of_classes(imported: Imported, export: ReadExport) -> None:
    """Warns of classes that earlier masks do not know, and of those that no mask shows."""
    ids, renamed = export.table.ids, export.table.renamed
    added = list(ids)[len(export.earlier_table.colors) :]
    if export.num_earlier and added:
        new = ', '.join(f'{name} (id {ids[name]})' for name in added)
        earlier = f'the {export.num_earlier} masks of earlier imports do not know them'
        effect = 'what shows them there is ignored or another class'
        imported.warnings.append(f'new classes {new}: {earlier}; {effect}')
    new_names = {renamed.get(name, name) for name in export.annotations.classes}
    exported_ids = {index for name, index in ids.items() if name in new_names}
    imported.erased_ids -= exported_ids | imported.drawn_ids
    lacking = [name for name in added if ids[name] in exported_ids - imported.drawn_ids]
    if lacking and imported.masks:
        remedy = f'--rename {shlex.join(f"{n}=" for n in lacking)} in another --out omits them'
        imported.warnings.append(f'classes without an annotation: {", ".join(lacking)}; {remedy}')
