"""Readers of the formats that labelling tools export, one module each."""

import re
from typing import Protocol

from mmseg_cct.errors import UserError

from ..shapes import Annotations
from ..source import Source
from . import coco, cvat, label_studio, labelme, plain_masks, roboflow, segmentation_mask


class Reader(Protocol):
    """What each of these modules offers."""

    TITLE: str  # of the format, for messages

    def files(self, source: Source, /) -> list[str]:
        """Finds the files of this format by their content; none if the export has another."""
        ...

    def read(self, source: Source, /) -> Annotations:
        """Reads the classes, in the tool's order, and the images.

        The parts of an image are read once somebody asks for them, so a mistake in one is an error
        of its image; in place of an image that cannot be read, an error stands.
        """
        ...


_READERS: tuple[Reader, ...] = (coco, cvat, segmentation_mask, label_studio, labelme, roboflow)

# Formats that are not read: what their files begin with, their names, and the way to one that is
_COCO = 'COCO JSON, by'
_OTHERS = (
    (r'^\d+( -?\d[\d.e-]*){4,}\s*$', "YOLO's labels", f'{_COCO} from_yolo, as_coco of supervision'),
    (r'_via_settings|(file|shape)_attributes', 'VIA', f'{_COCO} Annotation, Export Annotations'),
    (r'"(classTitle|geometryType|projectType)"', 'Supervisely', f'{_COCO} its app Export to COCO'),
    (
        r'"type"\s*:\s*"Feature',
        'GeoJSON',
        "masks, by gdal_rasterize or QuPath's LabeledImageServer",
    ),
    (
        r'EncodedPixels|^\w+(,\w+)*,(rle|segmentation)\b',
        "Kaggle's run lengths",
        'masks: of each two numbers the first is a start, from 1 and down the columns',
    ),
)
_HEAD, _LOOKED_AT = 4096, 100  # bytes of a file, and files


def find_reader(source: Source) -> Reader | None:
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


def reject_other_format(source: Source) -> None:
    """Raises an error that names a format that is not read, and the way to one that is."""
    for name in source.ending('.txt', '.csv', 'json')[:_LOOKED_AT]:
        head = source.read(name)[:_HEAD].decode(errors='replace')
        for pattern, title, way in _OTHERS:
            if re.search(pattern, head, re.MULTILINE):
                raise UserError(source.location(name), f'{title}, which is not read', way)


def require_reader(source: Source) -> Reader:
    """Finds the reader of an export, or raises an error that says what can be read."""
    if reader := find_reader(source):
        return reader
    reject_other_format(source)
    if source.damaged:
        raise source.damaged[0]
    titles = ', '.join(reader.TITLE for reader in _READERS)
    raise UserError(str(source.path), 'no known format', f'{titles} or {plain_masks.TITLE}')
