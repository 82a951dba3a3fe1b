"""Classes of a config: given, or from the table beside the masks; and which are no objects."""

import re
from collections.abc import Sequence
from pathlib import Path

from mmseg_cct.annotations.class_table import TABLE, ClassTable, extended, read_table, write_table
from mmseg_cct.annotations.readers import find_reader, plain_masks
from mmseg_cct.annotations.source import Source
from mmseg_cct.config.shipped import command_line
from mmseg_cct.datasets.files.image_files import find_images
from mmseg_cct.datasets.files.labels import check_classes, is_background, means_ignored
from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import nearest

# How tools end the name of a mask beside its photo.
_MASK = re.compile(r'[_.-](mask|label|gt|seg|segmentation|annotation)\w*$', re.IGNORECASE)


def classes_of_folder(
    data: str, given: Sequence[str] | None, force: bool = False
) -> tuple[str, ...]:
    """Finds the class names of a folder in the order of their ids.

    Given ones must go on from those of a table; with `force`, not if no import has used it.

    Raises:
        UserError: There are no names, they differ from the table, or the folder is still an export
            of a labelling tool.
    """
    if Path(data).is_dir() and not Path(data, 'masks').is_dir():
        _require_masks(data)
    table = read_table(data)
    if given is None:
        if table is None:
            expected = f'the class names, or {Path(data, TABLE)} of tools/import_masks.py'
            raise UserError('--classes', 'missing', expected)
        given = list(table.colours)
    classes = tuple(given)
    check_classes(classes)
    if table and not _goes_on(classes, table) and not (force and not _is_imported(table)):
        found = f'{Path(data, TABLE)} has {" ".join(table.colours)}'
        or_force = '' if _is_imported(table) else ', or --force'
        expected = f'these first, in the same order, or no --classes{or_force}'
        raise UserError(f'--classes {" ".join(classes)}', found, expected)
    return classes


def table_of_folder(data: str, classes: Sequence[str]) -> Path | None:
    """Writes the class names beside the masks, where imports look for them.

    Returns the file, or None if it has these names or the folder is not ours to write to.
    """
    table = read_table(data)
    if table and classes == tuple(table.colours):
        return None
    if table and not _goes_on(classes, table):
        table = None
    rest, renamed = (table.rest, table.renamed) if table else (None, None)
    try:
        write_table(data, extended(table, dict.fromkeys(classes), rest, renamed))
    except OSError:
        return None
    return Path(data, TABLE)


def _goes_on(classes: Sequence[str], table: ClassTable) -> bool:
    return tuple(classes[: len(table.colours)]) == tuple(table.colours)


def _is_imported(table: ClassTable) -> bool:
    return table.rest is not None or bool(table.renamed)


def context_of_classes(classes: Sequence[str], given: Sequence[str] | None) -> tuple[str, ...]:
    """Finds the classes that are not objects: the given ones, or else the background."""
    if given is None:
        return tuple(filter(is_background, classes))
    for name in given:
        if name not in classes:
            raise UserError('--context', f'no class {name!r}', nearest(name, classes))
    return tuple(given)


def require_meant(data: str, classes: Sequence[str], context: Sequence[str] | None) -> None:
    """Asks whether classes named like pixels without a label are meant, as an import may say."""
    meant = {*(context or ()), *(table.colours if (table := read_table(data)) else ())}
    if asked := [name for name in classes if means_ignored(name) and name not in meant]:
        folders = f'{data}/masks', '--images', f'{data}/images'
        ids = [f'{name}={index}' for index, name in enumerate(classes)]
        names = [f'{name}=' for name in asked]
        out = '--out', f'{data.rstrip("/")}_labelled'
        command = command_line('import_masks', *folders, '--colors', *ids, '--rename', *names, *out)
        found = 'named like pixels without a label, would be trained'
        meant_so = f'--context {" ".join(asked)} to train it as no object'
        raise UserError(f'class {asked[0]}', found, f'{command} to ignore it, or {meant_so}')


def require_no_masks_among(images: Path, data: str) -> None:
    """Rejects masks among the photos, such as `a_mask.png` beside `a.jpg`: unlabelled photos."""
    found = find_images(images)
    ends = {name: _MASK.sub('', name) for name in found if _MASK.sub('', name) in found}
    strays = [name for name, photo in ends.items() if photo != name]
    if strays:
        end = strays[0].removeprefix(ends[strays[0]]) + found[strays[0]].suffix
        options = '--images', images, '--mask-suffix', end, '--binary', 'NAME', '--rest'
        out = 'background', '--out', f'{data.rstrip("/")}_imported'
        command = command_line('import_masks', images, *options, *out)
        raise UserError(
            found[strays[0]],
            f'named like a mask ({len(strays)} in all), would be an unlabelled photo',
            f'photos alone, as {command} sorts them (or --colors, see its --help)',
        )


def _require_masks(data: str) -> None:
    reader, has_images = find_reader(Source(data)), Path(data, 'images').is_dir()
    if reader is None or (reader is plain_masks and has_images):  # nothing but images
        return
    out = data if has_images else f'{data.rstrip("/")}_masks'
    options = () if reader is plain_masks else ('--rest', 'background')
    command = command_line('import_masks', data, '--out', out, *options)
    raise UserError(data, f'{reader.TITLE}, not masks of ids', f'first: {command} (see its --help)')
