"""Masks of unknown quality as the pseudo labels of an image."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mmseg_cct.datasets.files.images import IdOfColor, named_if_unreadable
from mmseg_cct.datasets.files.labels import IGNORE_INDEX, check_mask
from mmseg_cct.errors import UserError

from .unlabeled import LoadPseudoLabels


class LoadWeakMasks(LoadPseudoLabels):
    """`LoadPseudoLabels` for masks from anywhere: an image may have none, and gets no label.

    Their ids are those of the training's `classes`, which are in the order of their ids, unless a
    `classes.json` in `label_dir` or beside it names them, as `import_masks` and `predict_images`
    write it. Then they become those of the same names; other names are ignored.
    """

    def __init__(self, image_dir: str, label_dir: str, classes: Sequence[str]) -> None:
        super().__init__(image_dir, label_dir)
        folder = Path(label_dir).absolute()
        tables = [path / 'classes.json' for path in (folder, folder.parent)]
        self.names = list(classes)
        if table := next(filter(Path.is_file, tables), None):
            with named_if_unreadable(table, 'list of classes'):
                entries = json.loads(table.read_text('utf-8'))['classes']
                self.names = [
                    entry['name'] if isinstance(entry, dict) else entry for entry in entries
                ]
                if not {*self.names} & {*classes}:
                    raise UserError(f'none of the classes {", ".join(classes)}')
        ids = {name: index for index, name in enumerate(classes)}
        self.new_ids = np.full(256, IGNORE_INDEX, np.uint8)
        self.new_ids[: len(self.names)] = [ids.get(name, IGNORE_INDEX) for name in self.names]

    def path_of(self, img_path: str) -> str:
        """Returns the path as its parent does, or that of a mask which ends in `.PNG`."""
        path = super().path_of(img_path)
        upper = f'{path.removesuffix(".png")}.PNG'
        return upper if os.path.isfile(upper) and not os.path.isfile(path) else path

    def has_mask(self, img_path: str) -> bool:
        """Tells whether an image has a mask."""
        return os.path.isfile(self.path_of(img_path))

    def read(self, results: dict, id_of_color: IdOfColor | None = None) -> np.ndarray:
        """Reads the labels of `img_path` as its parent does, all 255 if there is no mask."""
        path = self.path_of(results['img_path'])
        if not self.has_mask(results['img_path']):
            return np.full(results['ori_shape'][:2], IGNORE_INDEX, np.uint8)
        labels = super().read(results, id_of_color)
        check_mask(path, labels, len(self.names))
        return self.new_ids[labels.astype(np.intp)]
