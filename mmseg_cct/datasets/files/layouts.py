"""Where a data folder has its images and masks, and which of them are there to validate on."""

import re
from collections.abc import Iterable
from itertools import product
from pathlib import Path

VAL_LIST = 'val.txt'  # in a data folder: the images that an import found to be for validation
Dirs = tuple[Path, Path]  # of images and of masks
# Our names first, then those of MMSegmentation, ADE20K, VOC and others
_IMAGES = 'images', 'img_dir', 'imgs', 'image', 'JPEGImages'
_MASKS = 'masks', 'ann_dir', 'annotations', 'labels', 'mask', 'label', 'gt', 'SegmentationClass'


def training_dirs(data: str | Path) -> Dirs:
    """Finds the folders of images and masks in a data folder, or else in its folder `train`."""
    return _first(Path(data), Path(data, 'train')) or (Path(data, 'images'), Path(data, 'masks'))


def validation_dirs(data: str | Path) -> Dirs | None:
    """Finds the folders of the images and masks to validate on, if there is a folder of them."""
    parts = [path for name in ('val', 'valid', 'validation') if (path := Path(data, name)).is_dir()]
    return _first(*parts) or ((parts[0] / 'images', parts[0] / 'masks') if parts else None)


def is_validation(names: Iterable[str]) -> bool:
    """Whether one of the names of a folder or subset means validation, such as `val2017`."""
    return any(re.fullmatch(r'val(id|idation)?\d*', name.lower()) for name in names)


def _first(*roots: Path) -> Dirs | None:
    pairs = (
        (root / images, root / masks) for root, images, masks in product(roots, _IMAGES, _MASKS)
    )
    return next((pair for pair in pairs if pair[0].is_dir() and pair[1].is_dir()), None)
