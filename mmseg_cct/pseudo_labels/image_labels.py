"""Image-level labels from a table or from masks, and their annotation file."""

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from mmseg_cct.datasets.files.image_files import find_listed
from mmseg_cct.datasets.files.images import read_mask
from mmseg_cct.datasets.files.labels import check_mask
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import read_utf8, write_text
from mmseg_cct.utils.text import one_line

SEPARATOR = ';'
_EXPECTED = 'a CSV file with the columns image,labels'

ImageLabels = dict[str, list[int]]


def labels_from_table(
    table: str | os.PathLike, images: Mapping[str, str], classes: Sequence[str]
) -> ImageLabels:
    """Reads image-level labels from a CSV file: ascending class ids by image name.

    Below the header ``image,labels``, a line such as ``a/b.jpg,person;dog`` has an image, with or
    without its extension, and its classes, possibly none. `images` are paths by name without
    extension, `classes` are in the order of the classifier's outputs.

    Raises:
        UserError: If the file cannot be read, or a row has no known image and classes.
    """
    # With or without a byte order mark, which Excel writes
    rows = csv.DictReader(io.StringIO(read_utf8(table, _EXPECTED), newline=''))
    if not {'image', 'labels'} <= set(rows.fieldnames or ()):
        raise UserError(table, f'columns {one_line(rows.fieldnames, 120)}', 'image,labels')
    labels: ImageLabels = {}
    for row in rows:
        line = f'{table}, line {rows.line_num}'
        if None in row or None in row.values():
            expected = f'an image and its classes, separated by "{SEPARATOR}"'
            raise UserError(line, 'more or fewer columns than the header', expected)
        name = find_listed(row['image'].strip(), images)
        if name is None or name in labels:
            problem = 'is there twice' if name else 'is no image of the folder'
            raise UserError(line, f'{row["image"]!r} {problem}')
        named = set(filter(None, map(str.strip, row['labels'].split(SEPARATOR))))
        if unknown := sorted(named - set(classes)):
            raise UserError(line, f'no class {unknown[0]!r}', f'some of {", ".join(classes)}')
        labels[name] = sorted(map(classes.index, named))
    return labels


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

    `masks` is a folder of ``NAME.png``, one channel of ids of `mask_classes`; 255 is ignored.
    `classes` are those of the masks without the background, in the order of the classifier's
    outputs. `label_map` and `reduce_zero_label` are those of MMSeg's data sets.

    Raises:
        UserError: If a mask is missing or unreadable, or has an unknown id.
    """
    labels, label_ids = {}, [mask_classes.index(name) for name in classes]
    for name in names:
        path = Path(masks, f'{name}.png')
        ids = read_mask(path)
        # Ids as MMSeg would load them, so that image-level labels and masks mean the same classes
        number, zero = len(mask_classes), reduce_zero_label
        label_of = check_mask(path, ids, number, label_map=label_map, reduce_zero_label=zero)
        pixels: Counter[int] = Counter()  # by class: a label map may merge ids
        for raw, count in zip(*(a.tolist() for a in np.unique(ids, return_counts=True))):
            pixels[label_of[raw]] += count
        labels[name] = [i for i, label in enumerate(label_ids) if pixels[label] >= min_pixels]
    return labels


def write_annotations(
    path: str | Path,
    labels: ImageLabels,
    images: Mapping[str, str],
    image_dir: str | os.PathLike,
    classes: Sequence[str],
) -> None:
    """Writes the JSON of mmpretrain's `MultiLabelDataset`, whose ``data_prefix`` is `image_dir`."""
    paths = {name: Path(images[name]).relative_to(image_dir).as_posix() for name in labels}
    data_list = [dict(img_path=paths[name], gt_label=ids) for name, ids in labels.items()]
    annotations = dict(metainfo=dict(classes=list(classes)), data_list=data_list)
    write_text(path, json.dumps(annotations, indent=1) + '\n')
