"""Image-level labels from a table or from masks, and their annotation file."""

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import read_utf8, write_text
from mmseg_cct.utils.image_files import IMAGE_SUFFIXES, read_mask
from mmseg_cct.utils.image_lists import find_listed
from mmseg_cct.utils.masks import check_mask
from mmseg_cct.utils.text import one_line

SEPARATOR = ';'

ImageLabels = dict[str, list[int]]


def labels_from_table(
    table: str | os.PathLike, images: Mapping[str, Path], classes: Sequence[str]
) -> ImageLabels:
    """Reads image-level labels from a CSV file: ascending class ids by image name.

    The header is ``image,labels``; a line such as ``a/b.jpg,person;dog`` has an image, with or
    without its extension, and its classes, possibly none. `images` are paths by name without
    extension, `classes` names in the order of the classifier's outputs. A file that is missing or
    not UTF-8, other columns, a row of another length, an image that is unknown or occurs twice, and
    an unknown class are a `UserError`.
    """
    if not os.path.isfile(table):
        raise UserError(table, 'no such file', 'a CSV file with the image-level labels')
    text = read_utf8(table, 'a CSV file with the image-level labels')
    reader = csv.DictReader(io.StringIO(text, newline=''))
    found: ImageLabels = {}
    try:
        if not {'image', 'labels'} <= set(reader.fieldnames or ()):
            columns = one_line(','.join(reader.fieldnames or ['none']), 120)
            raise UserError(table, f'columns {columns}', 'image,labels')
        for row in reader:
            place = f'{table}, line {reader.line_num}'
            name, ids = _read_row(row, images, classes, place)
            if name in found:
                raise UserError(place, f'{name} is there twice', 'every image once')
            found[name] = ids
    except csv.Error as error:
        raise UserError(
            f'{table}, line {reader.reader.line_num}',
            error,
            'a CSV file with the columns image,labels',
        ) from None
    return found


def labels_from_masks(
    masks: str | os.PathLike,
    names: Iterable[str],
    mask_classes: Sequence[str],
    classes: Sequence[str],
    label_map: Mapping[int, int] | None = None,
    min_pixels: int = 1,
    reduce_zero_label: bool = False,
) -> ImageLabels:
    """Reduces masks to image-level labels: ascending ids of the classes that occur, by image name.

    Args:
        masks: Folder of masks ``NAME.png``, one channel of class ids.
        names: Names of the images.
        mask_classes: Names of the ids in masks, in their order; 255 is ignored.
        classes: Class names, in the order of the classifier's outputs: those of the masks without
            the background.
        label_map: Class id, or 255, by id in the file; missing ids stay as they are.
        min_pixels: Minimum number of pixels of a class in an image.
        reduce_zero_label: Whether 0 in the file is ignored and the classes start at 1.

    Returns:
        The labels. A mask that is missing or unreadable, or has an unknown id, is a `UserError`.
    """
    found = {}
    for name in names:
        path = Path(masks, f'{name}.png')
        ids = read_mask(path)
        label_of = check_mask(
            path,
            ids,
            len(mask_classes),
            label_map=label_map,
            reduce_zero_label=reduce_zero_label,
        )
        pixels: Counter[int] = Counter()  # by class: a label map may merge ids
        for raw, count in zip(*(a.tolist() for a in np.unique(ids, return_counts=True))):
            pixels[label_of[raw]] += count
        names_present = {
            mask_classes[label]
            for label, count in pixels.items()
            if label != 255 and count >= min_pixels
        }
        found[name] = [index for index, label in enumerate(classes) if label in names_present]
    return found


def write_annotations(
    path: str | Path,
    labels: ImageLabels,
    images: Mapping[str, Path],
    image_dir: str | os.PathLike,
    classes: Sequence[str],
) -> None:
    """Writes the annotation file of mmpretrain's `MultiLabelDataset`, in JSON.

    Image paths are relative to `image_dir`, the ``data_prefix`` of the data set; `classes` are in
    the order of their ids.
    """
    annotations = dict(
        metainfo=dict(classes=list(classes)),
        data_list=[
            dict(img_path=images[name].relative_to(image_dir).as_posix(), gt_label=ids)
            for name, ids in labels.items()
        ],
    )
    write_text(path, json.dumps(annotations, indent=1) + '\n')


def _read_row(
    row: dict[str, Any], images: Mapping[str, Path], classes: Sequence[str], place: str
) -> tuple[str, list[int]]:
    """Returns the name of a row's image and its class ids."""
    # csv puts values beyond the header under the key None, and None for values that a row lacks.
    columns = {name: value for name, value in row.items() if name is not None}
    beyond = row.get(None, [])  # type: ignore[call-overload]
    if beyond or None in columns.values():
        count = len([value for value in columns.values() if value is not None]) + len(beyond)
        raise UserError(
            place,
            f'{count} columns',
            f'{len(columns)}, {",".join(columns)}, with the classes of an image separated by '
            f'"{SEPARATOR}"',
        )
    listed = row['image'].strip()
    name = find_listed(listed, images)
    if name is None:
        raise UserError(place, f'no image {listed!r}', f'one ({", ".join(IMAGE_SUFFIXES)})')
    labels = [label.strip() for label in row['labels'].split(SEPARATOR)]
    for label in filter(None, labels):
        if label not in classes:
            raise UserError(
                place,
                f'no class {label!r}',
                f'some of {", ".join(classes)}, separated by "{SEPARATOR}"',
            )
    return name, sorted({classes.index(label) for label in labels if label})
