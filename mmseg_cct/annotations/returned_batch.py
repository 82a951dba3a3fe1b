"""What came back of a batch: images that were skipped, and predictions that nobody touched."""

import json
from pathlib import Path

import numpy as np

from mmseg_cct.datasets.files.image_files import find_masks, image_stem
from mmseg_cct.datasets.files.images import read_mask
from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.utils.files import read_utf8

from .image_pool import ImageNames
from .source import reading

PREDICTED = 'predicted'  # the folder of the masks that an untouched export gives
MARKS = 'marks.json'  # `done` or `skip` by image, as the review page saves it


class ReturnedBatch:
    """A batch whose corrections are imported: tells which of its masks are no labels."""

    def __init__(self, folder: Path) -> None:
        self._predicted = find_masks(folder / PREDICTED)
        self._names = ImageNames(self._predicted)
        self._marks: dict[str, str] = {}
        if (marks := folder / MARKS).exists():
            with reading(str(marks)):
                content = json.loads(read_utf8(marks, 'what the review page saves'))
                self._marks = {image_stem(name): mark for name, mark in content.items()}

    def objection(self, name: str, mask: np.ndarray) -> str:
        """Says why the mask `(H, W)` of an image is no label; empty if it is one."""
        if (batch_name := self._names.find(name)) is None:
            return ''
        mark = self._marks.get(batch_name)
        if mark == 'skip':
            return 'images marked skip, unlabelled'
        predicted = read_mask(self._predicted[batch_name])
        is_same = predicted.shape == mask.shape and ((predicted == mask) | (mask == IGNORE_INDEX))
        if mark == 'done' or not np.all(is_same):
            return ''
        return f'masks as predicted, unlabelled unless {MARKS} of the batch says done'
