"""SUN RGB-D with the 13 classes of Eigen et al. and SceneNet, and its conversion to them."""

from pathlib import Path
from typing import Any

import numpy as np
from mmseg.datasets import BaseSegDataset
from mmseg.registry import DATASETS
from PIL import Image
from tqdm import tqdm

from mmseg_cct.datasets.files.image_files import resolve_list
from mmseg_cct.datasets.files.images import image_size, read_mask, write_png
from mmseg_cct.datasets.files.labels import IGNORE_INDEX, check_size
from mmseg_cct.errors import UserError

CLASSES = (
    'Bed', 'Books', 'Ceiling', 'Chair', 'Floor', 'Furniture', 'Objects', 'Picture', 'Sofa', 'Table',
    'TV', 'Wall', 'Window',
)  # fmt: skip

# The 37 classes in the order of their ids from 1, and their new names: the table "Conversion from
# SUN RGB-D/NYUv2 37/40 Labels" of github.com/ankurhanda/SceneNetv1.0 (Handa et al., CVPR 2016),
# also in class13Mapping.mat of github.com/ankurhanda/nyuv2-meta-data.
FROM_37 = {
    'wall': 'Wall', 'floor': 'Floor', 'cabinet': 'Furniture', 'bed': 'Bed', 'chair': 'Chair',
    'sofa': 'Sofa', 'table': 'Table', 'door': 'Wall', 'window': 'Window', 'bookshelf': 'Furniture',
    'picture': 'Picture', 'counter': 'Furniture', 'blinds': 'Window', 'desk': 'Table',
    'shelves': 'Furniture', 'curtain': 'Window', 'dresser': 'Furniture', 'pillow': 'Objects',
    'mirror': 'Objects', 'floor mat': 'Floor', 'clothes': 'Objects', 'ceiling': 'Ceiling',
    'books': 'Books', 'fridge': 'Furniture', 'tv': 'TV', 'paper': 'Objects', 'towel': 'Objects',
    'shower curtain': 'Objects', 'box': 'Objects', 'whiteboard': 'Objects', 'person': 'Objects',
    'night stand': 'Furniture', 'toilet': 'Objects', 'sink': 'Objects', 'lamp': 'Objects',
    'bathtub': 'Objects', 'bag': 'Objects',
}  # fmt: skip


@DATASETS.register_module()
class SUNRGBDDataset(BaseSegDataset):
    """SUN RGB-D, 13 classes; `convert_labels` writes its masks.

    Args:
        ann_file: List of image stems, relative to the working directory or to ``data_root``; if
            empty, every image of the folder is used.
        **kwargs: Further arguments of `BaseSegDataset`.
    """

    METAINFO = dict(
        classes=CLASSES,
        palette=[
            [0, 0, 255], [233, 89, 48], [0, 218, 0], [149, 0, 240], [222, 241, 24],
            [255, 206, 206], [0, 224, 229], [106, 136, 204], [117, 29, 41], [240, 35, 235],
            [0, 167, 156], [249, 139, 0], [225, 229, 194],
        ],
    )  # fmt: skip

    def __init__(self, ann_file: str = '', **kwargs: Any) -> None:
        super().__init__(ann_file=resolve_list(ann_file), **kwargs)


def to_13_classes(ids: np.ndarray) -> np.ndarray:
    """Maps ids of the 37 classes (0 is void) to uint8 ids of the 13 (255 is ignored).

    Raises:
        UserError: If an id is outside [0, 37].
    """
    table = np.array([IGNORE_INDEX, *(CLASSES.index(name) for name in FROM_37.values())], np.uint8)
    if ids.size and (ids.min() < 0 or ids.max() >= len(table)):
        problem = f'ids from {ids.min()} to {ids.max()}'
        raise UserError(f'{problem}; expected 0 (void) to {len(table) - 1}')
    return table[ids]


def convert_labels(labels: str | Path, root: str | Path) -> int:
    """Writes a mask of the 13 classes for every image, and returns their number.

    The label images come from github.com/ankurhanda/sunrgbd-meta-data: sorted by name, those of the
    test images come first, then those of the training images. The mask of
    ``{root}/images/test/NAME.jpg`` is ``{root}/masks/test/NAME.png``, and likewise for ``train``.

    Raises:
        UserError: If the labels do not match the images, a file is not a label image, or an
            existing mask differs.
    """
    paths = sorted(Path(labels).glob('*.png'))
    folders = [Path(root, 'images', split) for split in ('test', 'train')]
    images = [image for folder in folders for image in sorted(folder.glob('*.jpg'))]
    if not paths or len(paths) != len(images):
        problem = f'{len(paths)} label images (*.png) for {len(images)} images'
        raise UserError(labels, problem, f'one for each in {Path(root, "images")}')
    for path, image in zip(tqdm(paths, unit='image'), images):
        mask = Path(root, 'masks', image.parent.name, f'{image.stem}.png')
        label_ids = read_mask(path)
        check_size(path, label_ids, image, image_size(str(image), None, decode=False))
        try:
            ids = to_13_classes(label_ids)
        except UserError as error:
            raise UserError(path, error) from None
        if not mask.exists():
            write_png(mask, Image.fromarray(ids))
        elif not np.array_equal(read_mask(mask), ids):
            expected = 'the same, or another folder'
            raise UserError(mask, f'is there and differs from {path} in 13 classes', expected)
    return len(paths)
