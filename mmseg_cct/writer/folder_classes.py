"""Classes of a config: given, or from the table beside the masks; and which are no objects."""

from collections.abc import Sequence
from pathlib import Path

from mmseg_cct.annotations.class_table import TABLE, ClassTable, extended, read_table, write_table
from mmseg_cct.annotations.readers import find_reader, plain_masks, reject_other_format
from mmseg_cct.annotations.source import Source
from mmseg_cct.datasets.files.image_files import IMAGE_SUFFIXES, find_files, training_dirs
from mmseg_cct.datasets.files.labels import check_classes, is_background, means_ignored
from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import command_line, nearest


def classes_of_folder(
    data: str, classes: Sequence[str] | None, force: bool = False
) -> tuple[str, ...]:
    """Finds the class names of a folder in the order of their ids.

    `classes` must go on from those of a table, whose ids the masks have; with `force` they
    replace a table that no import has made.

    Raises:
        UserError: There are no names, they differ from the table, or the folder is still an export
            of a labelling tool.
    """
    if not Path(data, 'masks').is_dir():
        _require_masks(data)
    table = read_table(data)
    classes = tuple((table.colors if table else ()) if classes is None else classes)
    check_classes(classes)
    if table and not _goes_on(classes, table) and not (force and table.undrawn is None):
        problem = f'{Path(data, TABLE)} has {" ".join(table.colors)}'
        expected = 'these first, in the same order, or no --classes'
        raise UserError(f'--classes {" ".join(classes)}', problem, expected)
    return classes


def table_of_folder(data: str, classes: Sequence[str]) -> Path | None:
    """Writes the class names beside the masks, where imports look for them.

    Returns the file, or None if it has these names or the folder is not ours to write to.
    """
    table = read_table(data)
    if table and classes == tuple(table.colors):
        return None
    if table and not _goes_on(classes, table):
        table = None
    undrawn, renamed = (table.undrawn, table.renamed) if table else (None, None)
    try:
        write_table(data, extended(table, dict.fromkeys(classes), undrawn, renamed))
    except OSError:
        return None
    return Path(data, TABLE)


def _goes_on(classes: Sequence[str], table: ClassTable) -> bool:
    return tuple(classes[: len(table.colors)]) == tuple(table.colors)


def context_of_classes(classes: Sequence[str], context: Sequence[str] | None) -> tuple[str, ...]:
    """Finds the classes that are not objects: those of `context`, or else the background."""
    if context is None:
        return tuple(filter(is_background, classes))
    for name in context:
        if name not in classes:
            raise UserError('--context', f'no class {name!r}', nearest(name, classes))
    return tuple(context)


def reject_void_names(data: str, classes: Sequence[str], context: Sequence[str] | None) -> None:
    """Rejects names such as "void" unless `context` or an import's table confirms them."""
    confirmed = {*(context or ()), *(table.colors if (table := read_table(data)) else ())}
    for name in classes:
        if means_ignored(name) and name not in confirmed:
            problem = 'named like pixels without a label, but would be trained'
            expected = f'255 in the masks where pixels are ignored, or --context {name} to train it'
            raise UserError(f'class {name}', problem, expected)


def _require_masks(data: str) -> None:
    source, (images, masks) = Source(data), training_dirs(data)
    reader = find_reader(source)
    has_images = images.is_dir()
    if reader is None or (reader is plain_masks and has_images):
        pictures = find_files(masks) if masks.is_dir() else []
        if not any(path.lower().endswith(IMAGE_SUFFIXES) for path in pictures):
            reject_other_format(source)
        if masks.is_dir():
            return
        images = images if has_images else Path(data)  # nothing but images
        command = command_line('next_batch', '--images', images, '-n', '10', '--out', 'batch0')
        expected = f'those of some images; to choose which: {command}'
        raise UserError(Path(data, 'masks'), 'no masks yet', expected)
    out = data if has_images else f'{data.rstrip("/")}_masks'
    options = () if reader is plain_masks else ('--rest', 'background')
    command = command_line('import_masks', data, '--out', out, *options)
    raise UserError(data, f'{reader.TITLE}, not masks of ids', f'first: {command} (see its --help)')
