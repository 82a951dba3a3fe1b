"""Makes masks of class ids from an export of a labelling tool."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
from PIL import Image

from mmseg_cct.datasets.files.image_files import find_masks
from mmseg_cct.datasets.files.images import read_mask, write_png
from mmseg_cct.datasets.files.labels import BACKGROUND, means_ignored
from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.utils.files import remove_parts
from mmseg_cct.utils.processes import locked_folder
from mmseg_cct.utils.text import counted

from .class_table import TABLE, ClassTable, data_folder, extended, read_table, write_table
from .draw_image import Drawer, Told
from .image_pool import ImageNames, ImagePool
from .readers import plain_masks, require_reader
from .shapes import AnnotatedImage, Colour
from .source import Source, reading

_NAMED = 3  # images by name


@dataclass
class Imported:
    """The outcome of an import."""

    table: ClassTable  # with the classes of earlier imports
    new: int = 0  # masks that did not exist before
    unchanged: int = 0  # masks that existed and are the same
    changed: int = 0  # masks that existed and differ
    bare: int = 0  # images that the export lists without a shape; they get no mask
    missing: list[str] = field(default_factory=list)  # annotated images without a file
    # what is not in the masks as it was drawn, and what differs from earlier ones
    told: Told = field(default_factory=lambda: defaultdict(Counter))
    warnings: list[str] = field(default_factory=list)  # lines about the whole import
    failed: list[str] = field(default_factory=list)  # lines about images that are not imported
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
            (self.bare, 'image', ' without annotation or mask'),
            (self.images, 'image', f' {"copied" if self.is_copied else "linked"}'),
        )
        told = [counted(number, noun) + what for number, noun, what in counts if number]
        lines = [', '.join(told) or 'no mask', *(f'warning: {line}' for line in self.warnings)]
        for what, images in self.told.items():
            names = f'{", ".join(list(images)[:_NAMED])}{", ..." if len(images) > _NAMED else ""}'
            lines.append(f'{what}: {images.total()} in {counted(len(images), "image")}: {names}')
        return '\n'.join(lines)

    def require_complete(self, overwrite: bool) -> None:
        """Raises an error that lists what could not be imported, and masks that were kept."""
        problems: list[Problem | UserError] = [UserError(line) for line in self.failed]
        if self.changed and not overwrite:
            kept = f'{self.changed} masks of earlier imports differ and were kept'
            problems.append(Problem(f'{kept}; --overwrite replaces them'))
        raise_problems(problems)


def import_masks(
    source: str | Path,
    out: str | Path,
    *,
    images: str | Path | None = None,
    rest: str | None = None,
    colours: Mapping[str, Colour] | None = None,
    rename: Mapping[str, str | None] | None = None,
    mask_suffix: str = '',
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
        rest: What pixels that no shape covers become, 'background' or 'ignore'; by default as in
            the first import.
        colours: For colour masks: the colours by class name.
        rename: New names for the export's classes, None to ignore their pixels. Those of earlier
            imports still apply.
        mask_suffix: For colour masks: what their names add to those of their images, including the
            extension.
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
        >>> done = import_masks(export, data, rest='background')
        >>> done.describe()
        '1 new mask, 1 image linked'
        >>> done.table.ids, int(read_mask(data / 'masks/photo.png').sum())
        ({'background': 0, 'car': 1}, 6)
    """
    # What is there already, and what the export holds
    out, export = Path(out), Source(source)
    home = data_folder(out)
    table = read_table(home) or ClassTable()
    earlier = find_masks(out / 'masks') if (out / 'masks').is_dir() else {}
    if earlier and not table.colours:
        found = f'holds masks, whose ids have no names without {TABLE}'
        expected = 'that file with {"classes": ["background", …]} by id, or another --out'
        raise UserError(str(out), found, expected)
    rest = rest or table.rest
    if colours is not None:
        annotations = plain_masks.read_colours(export, colours, mask_suffix, rest is None)
    else:
        reader = require_reader(export)
        if reader is plain_masks:
            plain_masks.ask_for_names(export)
        annotations = reader.read(export)

    # The classes of both
    if rest is None and colours is None:
        expected = 'background if every object is drawn, ignore if only some are'
        raise UserError('--rest', 'missing', expected)
    if empty and rest != BACKGROUND:
        raise UserError(f'--empty-is-background goes with --rest background, not {rest}')
    renamed = _all_renamed(table, annotations.classes, rename or {})
    classes: dict[str, Colour | None] = {}
    for name, colour in annotations.classes.items():
        new = renamed.get(name, name)
        if new is not None:  # several may get the same name
            classes.setdefault(new, colour)
    done = Imported(extended(table, classes, rest, renamed), is_copied=copy)
    added = [f'{name} (id {n})' for name, n in done.table.ids.items() if name not in table.colours]
    if earlier and added:
        done.warnings.append(
            f'new classes {", ".join(added)}: the {len(earlier)} masks of earlier imports do not '
            'know them; what shows them there is ignored or another class'
        )

    # The masks; the folder is ours once there is one to write
    pool = ImagePool(out, images, export)
    done.failed += map(str, export.damaged)
    drawer = Drawer(done.table, rest, boxes, draw_crowds, empty, done.told)
    drawn = _drawn(progress(annotations.images), pool, drawer, out / 'masks', done)
    if first := next(drawn, None):
        with locked_folder(home, 'another import'):
            # The ids were chosen before there was a lock, since a failed import makes no folder.
            if (read_table(home) or ClassTable()) != table:
                raise UserError(f'{home / TABLE}: another import changed it; run this one again')
            remove_parts(home, '**/')
            # The names first: masks without them would be ids that nobody can read
            write_table(home, done.table)
            for name, mask in chain([first], drawn):
                _write(out / 'masks' / f'{name}.png', name, mask, done, overwrite)
            # Last: images whose masks are still missing would count as unlabelled ones
            done.images = pool.link(copy) if done.masks else 0
    for name in done.missing:
        done.told['annotated images without a file'][name] += 1
    if not done.masks and done.missing:
        found = f'none of the {len(done.missing)} annotated ones, such as {done.missing[0]}'
        expected = '--images with them' + ('' if colours is None else ', or --mask-suffix')
        done.failed.insert(0, str(Problem(pool.origin, found, expected)))
    elif not done.masks and done.bare:
        done.failed.append(f'{export.path}: no image is annotated')
    return done


def _drawn(
    images: Iterable[AnnotatedImage | UserError],
    pool: ImagePool,
    drawer: Drawer,
    folder: Path,
    done: Imported,
) -> Iterator[tuple[str, np.ndarray]]:
    """Draws images one by one: name and mask; notes those that get none."""
    names, taken = ImageNames(pool.files), dict[str, str]()
    for annotated in images:
        try:
            if isinstance(annotated, UserError):
                raise annotated  # told below, like those that drawing finds
            with reading(annotated.place):
                name = names.find(annotated.name)
                if name is None and next(iter(annotated.parts), None):
                    done.missing.append(annotated.name)
                    continue
                mask = None if name is None else drawer.draw(annotated, pool[name])
                if name in taken and mask is not None:
                    found = f'annotated twice, in {taken[name]} and {annotated.place}'
                    raise UserError(name, found, 'one annotation an image')
        except UserError as error:  # the others go on
            done.failed.append(str(error))
            continue
        if name and mask is not None:
            taken[name] = annotated.place
            yield name, mask
            continue
        done.bare += 1
        if name and (folder / f'{name}.png').exists():
            what = 'images without a shape, whose masks are of earlier imports and stay'
            done.told[what][annotated.name] += 1


def _write(path: Path, name: str, mask: np.ndarray, done: Imported, overwrite: bool) -> None:
    """Writes a mask that is new or, if wanted, replaces an earlier one."""
    earlier = read_mask(path) if path.exists() else None
    if earlier is None:
        done.new += 1
    elif np.array_equal(earlier, mask):
        done.unchanged += 1
        return
    else:
        done.changed += 1
        fate = 'replaced' if overwrite else 'kept; --overwrite replaces them'
        fits = earlier.shape == mask.shape
        number = int((earlier != mask).sum()) if fits else mask.size
        done.told[f'pixels unlike those of earlier masks, {fate}'][name] += number
        if not overwrite:
            return
    palette = np.full((256, 3), 255, np.uint8)
    colours = [*done.table.colours.values()]
    palette[: len(colours)] = np.reshape(colours, (-1, 3))  # none if all is ignored
    write_png(path, Image.fromarray(mask), palette)


def _all_renamed(
    table: ClassTable, found: Iterable[str], new: Mapping[str, str | None]
) -> dict[str, str | None]:
    """Adds new class names to those of earlier imports; both apply to later imports.

    Names such as `void` need a decision, by a new name or an earlier import.
    """
    for name, its_new in new.items():
        if table.renamed.get(name, '') == its_new:
            continue
        if name not in found:
            expected = f'a class of the export: {", ".join(found)}'
            raise UserError('--rename', repr(name), expected)
        # Those masks hold its old id
        if table.renamed.get(name, name) in table.colours:
            problem = f'{name!r} has masks of earlier imports; choose another --out'
            raise UserError('--rename', problem)
    renamed = {**table.renamed, **new}
    known = {*renamed, *table.colours}
    if asked := [name for name in found if means_ignored(name) and name not in known]:
        ignored = ' '.join(f'{name}=' for name in asked)
        kept = ' '.join(f'{name}={name}' for name in asked)
        expected = f'--rename {ignored} to ignore its pixels, or --rename {kept} to train it'
        raise UserError(f'class {asked[0]}', 'named like pixels without a label', expected)
    return renamed
