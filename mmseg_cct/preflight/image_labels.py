"""Checks files of image-level labels, as mmpretrain's `MultiLabelDataset` reads them."""

import json
import os
from collections.abc import Iterator
from typing import Any

from mmengine.registry import DATASETS

from mmseg_cct.errors import Problem
from mmseg_cct.utils.files import read_utf8

from .components import class_of

_EXPECTED = 'image-level labels, as tools/make_image_labels.py writes them'


def annotation_problems(dataset: Any) -> Iterator[Problem]:
    """Checks that the file of a data set has `metainfo` with `classes`, and a `data_list`."""
    bases = getattr(class_of(dataset, DATASETS), '__mro__', ())
    # by its name, because mmpretrain may be missing
    is_one = any(base.__name__ == 'MultiLabelDataset' for base in bases)
    if not is_one or not dataset.get('ann_file'):
        return
    path = os.path.join(dataset.get('data_root') or '', dataset['ann_file'])
    if not os.path.isfile(path):
        yield Problem(path, 'no such file', f'the {_EXPECTED}')
        return
    text = read_utf8(path, _EXPECTED)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield Problem(path, f'not JSON ({error})', _EXPECTED)
        return
    content = content if isinstance(content, dict) else {}
    for key, kind in (('metainfo', dict), ('data_list', list)):
        if not isinstance(content.get(key), kind):
            yield Problem(path, f'no {key}', _EXPECTED)
            return
    classes = content['metainfo'].get('classes')
    if not isinstance(classes, list) or not classes or not all(type(c) is str for c in classes):
        yield Problem(f'{path}: metainfo.classes={classes!r}', '', 'the names of the classes')
        return
    for index, entry in enumerate(content['data_list']):
        place, entry = f'{path}: data_list[{index}]', entry if isinstance(entry, dict) else {}
        image, labels = entry.get('img_path'), entry.get('gt_label')
        if not isinstance(image, str):
            yield Problem(f'{place}.img_path={image!r}', '', 'a path')
        elif not isinstance(labels, list):
            yield Problem(f'{place}.gt_label={labels!r}', '', 'a list of class ids')
        else:
            ids = range(len(classes))
            wrong = [label for label in labels if type(label) is not int or label not in ids]
            if wrong:
                found, expected = f'{wrong[0]!r} is no class id', f'0 to {len(classes) - 1}'
                yield Problem(f'{place}.gt_label={labels!r}', found, expected)
