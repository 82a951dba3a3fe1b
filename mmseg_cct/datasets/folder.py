"""Data set of a folder of images and a folder of masks."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mmseg.datasets import BaseSegDataset
from mmseg.registry import DATASETS

from mmseg_cct.datasets.files.image_files import (
    IMAGE_SUFFIXES,
    find_images,
    find_listed,
    masks_of_images,
    read_list,
    resolve_list,
)
from mmseg_cct.datasets.files.labels import IGNORE_INDEX, check_names
from mmseg_cct.datasets.files.palette import class_colors
from mmseg_cct.errors import UserError
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.ranges import Range, one_of, ranges

SUBSETS = ('labeled', 'unlabeled', 'all')
_LABEL = Range(lambda v: type(v) is int and 0 <= v <= 255, 'a label from 0 to 255')


@DATASETS.register_module()
class FolderDataset(BaseSegDataset):
    """Images in one folder, and masks for some or all of them in another.

    An image ``{image_dir}/a/b.jpg`` has its mask at ``{mask_dir}/a/b{mask_suffix}``: one channel of
    class ids from 0 in the order of `classes`, and 255 for ignored pixels. Images of every format
    are found, in subfolders too. Masks are found by their names; no file is opened.

    Args:
        image_dir: Folder of the images.
        mask_dir: Folder of the masks; `None` if no image has one.
        classes: Names of the classes, in the order of their ids.
        subset: ``'labeled'`` takes the images that have a mask, ``'unlabeled'`` those that have
            none, ``'all'`` all of them.
        ann_file: Optional list of the set's images: paths in `image_dir` with or without the
            extension. The list itself is relative to the working directory or to `data_root`. With
            it, `subset` only says whether each image must have a mask (``'labeled'``) or masks are
            not looked at (``'unlabeled'``).
        exclude: Optional list like `ann_file`, of images to leave out of the set, such as those
            used for validation.
        partly_labeled: Optional list like `ann_file`, of images that join the set whatever their
            masks say: an unlabelled set also takes those whose masks are mostly ignored.
        palette: Colour of each class, RGB in [0, 255]. By default classes of Cityscapes, such as
            road, sky or person, have its colours, and the others are easy to tell apart.
        data_root: Folder that the other paths are relative to.
        image_suffix: End of an image's name that its mask and lists do not have, with or without
            the extension: ``_leftImg8bit``. Other images are left out.
        mask_suffix: End of a mask's name; case is ignored.
        ignore_index: Label of ignored pixels in the masks, 0 to 255; they are loaded as 255.
        **kwargs: Further arguments of `BaseSegDataset`.

    Raises:
        UserError: If a folder or the list is missing or empty, the class names are missing or
            repeated, a class is ignored, no image belongs to the subset, an image on the list is
            missing, or all masks have another suffix.

    Examples:
        >>> import numpy as np, tempfile
        >>> from mmcv import imwrite
        >>> root = tempfile.TemporaryDirectory()
        >>> for name in ('images/a.jpg', 'images/b.jpg', 'masks/a.png'):
        ...     _ = imwrite(np.zeros((4, 4), np.uint8), f'{root.name}/{name}')
        >>> folders = dict(data_root=root.name, image_dir='images', mask_dir='masks')
        >>> labeled = FolderDataset(**folders, classes=('road', 'sky'), subset='labeled')
        >>> unlabeled = FolderDataset(**folders, subset='unlabeled')
        >>> [os.path.basename(data[0]['img_path']) for data in (labeled, unlabeled)]
        ['a.jpg', 'b.jpg']
    """

    @ranges(subset=one_of(SUBSETS), ignore_index=_LABEL)
    def __init__(
        self,
        image_dir: str,
        mask_dir: str | None = None,
        classes: Sequence[str] = (),
        subset: str = 'all',
        ann_file: str = '',
        exclude: str = '',
        partly_labeled: str = '',
        palette: Sequence[Sequence[int]] | None = None,
        data_root: str | None = None,
        image_suffix: str | None = None,
        mask_suffix: str = '.png',
        ignore_index: int = IGNORE_INDEX,
        **kwargs: Any,
    ) -> None:
        if classes or subset != 'unlabeled':
            check_names(classes, 'FolderDataset.classes')
        # MMSeg reduces labels before it maps them.
        label = ignore_index - int(kwargs.get('reduce_zero_label', False))
        if 0 <= label < len(classes):
            key = f'FolderDataset.ignore_index={ignore_index}'
            problem = f'class {classes[label]} is never learned'
            raise UserError(key, problem, 'a label that no class has')
        self.ignored_labels = None if ignore_index == IGNORE_INDEX else {label: IGNORE_INDEX}
        self.subset, self.image_suffix = subset, image_suffix
        root = data_root or ''
        self.exclude = exclude and os.path.join(root, resolve_list(exclude))
        self.partly_labeled = partly_labeled and os.path.join(root, resolve_list(partly_labeled))
        prefix = dict(img_path=image_dir)
        if mask_dir is not None:
            prefix['seg_map_path'] = mask_dir
        palette = class_colors(classes) if palette is None else palette
        metainfo = dict(classes=tuple(classes), palette=[list(color) for color in palette])
        paths: Any = dict(data_root=data_root, data_prefix=prefix, seg_map_suffix=mask_suffix)
        super().__init__(ann_file=resolve_list(ann_file), metainfo=metainfo, **paths, **kwargs)
        self.METAINFO = self.metainfo  # MMSeg's tools look for the classes there

    def load_data_list(self) -> list[dict]:
        """Lists the images of the subset, with ``seg_map_path`` for those that have a mask."""
        images = self._find_images()
        masks = self._find_masks(images)
        # A list says which images there are, otherwise the masks do.
        if self.ann_file:
            names = self._listed_names(self.ann_file, images)
        elif self.subset == 'all':
            names = list(images)
        else:
            with_mask = self.subset == 'labeled'
            names = [name for name in images if (name in masks) == with_mask]
        partly = self._listed_names(self.partly_labeled, images) if self.partly_labeled else []
        names += sorted(set(partly).difference(names))
        # what validates must not be trained on
        if self.exclude:
            excluded = set(self._listed_names(self.exclude, images))
            names = [name for name in names if name not in excluded]
        self.used_twice = [images[name] for name in set(partly).intersection(names)]
        if not names:
            expected = 'images with a mask' if self.subset == 'labeled' else 'images without'
            masks_path = f'{self.data_prefix.get("seg_map_path")}/NAME{self.seg_map_suffix}'
            problem = f"no image belongs to subset '{self.subset}'"
            raise UserError(self.data_prefix['img_path'], problem, f'{expected} ({masks_path})')
        # A mask's path goes along only where its subset may read it.
        infos = []
        for name in names:
            info: dict = dict(img_path=images[name], label_map=self.ignored_labels, seg_fields=[])
            info['reduce_zero_label'] = self.reduce_zero_label
            if self.subset != 'unlabeled' and name in masks:
                info['seg_map_path'] = masks[name]
            elif self.subset == 'labeled':
                folder = self.data_prefix.get('seg_map_path') or 'FolderDataset.mask_dir'
                mask = os.path.join(folder, name + self.seg_map_suffix)
                raise UserError(images[name], f'no mask for this image of {self.ann_file}', mask)
            infos.append(info)
        return infos

    def _find_images(self) -> dict[str, str]:
        root = self.data_prefix['img_path']
        masks = self.data_prefix.get('seg_map_path')
        # With a list, masks among the images count for nothing, but not in one and the same folder.
        if masks is not None:
            inner, around = Path(os.path.abspath(masks)), Path(os.path.abspath(root))
            if inner == around or (not self.ann_file and around in inner.parents):
                problem = f'{masks} is or lies in image_dir {root}: masks would count as images'
                raise UserError('FolderDataset.mask_dir', problem, 'a folder beside it')
        return find_images(root, self.image_suffix)

    def _find_masks(self, images: dict[str, str]) -> dict[str, str]:
        root = self.data_prefix.get('seg_map_path')
        if root is None or (self.subset == 'unlabeled' and self.ann_file):
            return {}
        masks, strays = masks_of_images(root, self.seg_map_suffix, images)
        if strays:
            first = f'{strays[0]}: a mask without an image in {self.data_prefix["img_path"]}'
            warn(f'{first} ({len(strays)} in all); left out')
        return masks

    def _listed_names(self, file: str, images: dict[str, str]) -> list[str]:
        names = []
        for line in read_list(file):
            if (name := find_listed(line, images)) is None:
                problem = f'no image {line} in {self.data_prefix["img_path"]}'
                raise UserError(file, problem, f'one ({", ".join(IMAGE_SUFFIXES)})')
            names.append(name)
        return names
