"""Readers of the formats that labelling tools export, one module each."""

from types import ModuleType

from mmseg_cct.errors import UserError

from ..source import Source
from . import coco, cvat, label_studio, labelme, plain_masks, segmentation_mask

_READERS = coco, cvat, segmentation_mask, label_studio, labelme


def find_reader(source: Source) -> ModuleType | None:
    """Finds the reader of an export by its content; `plain_masks` if there are only masks.

    Raises:
        UserError: If the export has files of two formats.
    """
    fitting = [(reader, names[0]) for reader in _READERS if (names := reader.files(source))]
    if len(fitting) > 1:
        files = ' and '.join(f'{name} ({reader.TITLE})' for reader, name in fitting)
        raise UserError(str(source.path), f'two formats, {files}', 'one of them as the export')
    if fitting:
        return fitting[0][0]
    # Last, since pictures are in the exports of other tools, too
    return plain_masks if plain_masks.files(source) else None


def require_reader(source: Source) -> ModuleType:
    """Finds the reader of an export, or raises an error that says what can be read."""
    if reader := find_reader(source):
        return reader
    if source.damaged:
        raise source.damaged[0]
    titles = ', '.join(reader.TITLE for reader in _READERS)
    raise UserError(str(source.path), 'no known format', f'{titles} or {plain_masks.TITLE}')
