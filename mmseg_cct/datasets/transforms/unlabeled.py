"""Marks and labels that move with an unlabelled image, in place of the mask that it lacks."""

import os
from pathlib import Path

import numpy as np
from mmcv.transforms import BaseTransform
from mmengine.structures import PixelData
from mmseg.datasets.transforms import PackSegInputs
from mmseg.registry import TRANSFORMS
from torch import from_numpy

from mmseg_cct.datasets.files.images import IdOfColor, read_mask
from mmseg_cct.datasets.files.labels import check_size
from mmseg_cct.errors import UserError

# MMSeg's key of a mask: every transform moves it with the image, and it is the only seg field that
# `Pad` fills.
FIELD = 'gt_seg_map'
# In the pipeline 255 marks only filled pixels, so packing can tell them from unlabelled ones.
_FILLED, _UNLABELED = 255, 254


@TRANSFORMS.register_module()
class MarkValidPixels(BaseTransform):
    """Marks the image's own pixels before a transform of the unlabelled pipeline fills in others.

    Comes right after the loading. The marks stand in for the mask that the image lacks, so they
    move with the image, and `Pad`, `RandomRotate` and similar transforms fill them with their
    ignored label. `PackUnlabeledInputs` at the end turns them into the sample's `valid_mask`. A
    pipeline that fills nothing needs neither transform, because `BranchPreprocessor` marks its own
    padding. Nor does a pipeline with `LoadPseudoLabels`, whose labels are filled the same way.
    """

    def transform(self, results: dict) -> dict:
        """Adds `gt_seg_map`, `(H, W)` uint8 of ones, unless pseudo labels take its place."""
        if FIELD not in results:
            results[FIELD] = np.ones(results['img'].shape[:2], np.uint8)
            results.setdefault('seg_fields', []).append(FIELD)
        return results


@TRANSFORMS.register_module()
class PackUnlabeledInputs(PackSegInputs):
    """`PackSegInputs` that also packs what `MarkValidPixels` marked, as `valid_mask`.

    Takes the arguments of `PackSegInputs`.
    """

    def transform(self, results: dict) -> dict:
        """Packs `inputs`, `(3, H, W)`, and `data_samples` with `valid_mask`, `(1, H, W)` bool."""
        marks = results.pop(FIELD, None)
        packed = super().transform(results)
        if marks is not None:
            # filled pixels hold the transform's own value, such as 255
            packed['data_samples'].valid_mask = PixelData(data=from_numpy(marks == 1)[None])
        return packed


@TRANSFORMS.register_module()
class LoadPseudoLabels(BaseTransform):
    """Loads the pseudo labels of an image, which then move with it through every augmentation.

    In the pipeline they stand in for the mask that an unlabelled image lacks: every transform
    resizes (nearest neighbour), crops, flips, rotates and pads them (with 255) like a mask.
    `PackPseudoLabels` at the end turns them into the sample's `pseudo_sem_seg`. In between, a pixel
    without a label holds 254.

    Args:
        image_dir: Folder of the images.
        label_dir: Folder with ``a/b.png`` for the image ``{image_dir}/a/b.jpg``: one channel of
            label ids, 255 where a pixel has none. ``mmseg-cct make-pseudo-labels`` writes them.
    """

    def __init__(self, image_dir: str, label_dir: str) -> None:
        self.image_dir = image_dir
        self.label_dir = label_dir

    def path_of(self, img_path: str) -> str:
        """Returns ``{label_dir}/a/b.png`` for ``{image_dir}/a/b.jpg``, even if no such file exists.

        Raises:
            UserError: If the image is outside `image_dir`.
        """
        name = os.path.relpath(img_path, self.image_dir)
        if name.startswith(os.pardir):
            problem = f'{self.image_dir} does not hold {img_path}'
            expected = 'the folder of the unlabelled images'
            raise UserError('LoadPseudoLabels.image_dir', problem, expected)
        return str(Path(self.label_dir, name).with_suffix('.png'))

    def read(self, results: dict, id_of_color: IdOfColor | None = None) -> np.ndarray:
        """Reads the labels of `img_path`, `(H, W)`, 255 where a pixel has none.

        `id_of_color` is that of `read_mask`.

        Raises:
            UserError: If the file is missing or no mask, or its size is not `ori_shape`.
        """
        path = self.path_of(results['img_path'])
        labels = read_mask(path, id_of_color=id_of_color)
        if 'ori_shape' in results:
            check_size(path, labels, results['img_path'], results['ori_shape'][1::-1])
        return labels

    def transform(self, results: dict) -> dict:
        """Adds the labels as `gt_seg_map`, `(H, W)` uint8, and lists it in `seg_fields`."""
        labels = self.read(results)
        results[FIELD] = np.where(labels == 255, np.uint8(_UNLABELED), labels)
        if FIELD not in results.setdefault('seg_fields', []):
            results['seg_fields'].append(FIELD)
        return results


@TRANSFORMS.register_module()
class PackPseudoLabels(PackSegInputs):
    """`PackSegInputs` that also packs pseudo labels, as the sample's `pseudo_sem_seg`.

    The sample's `valid_mask` leaves out the pixels that a transform filled with 255. Takes the
    arguments of `PackSegInputs`.
    """

    def transform(self, results: dict) -> dict:
        """Packs an image with its pseudo labels.

        Returns `inputs`, `(3, H, W)`, and `data_samples`, whose `pseudo_sem_seg` is `(1, H, W)`
        int64, 255 where there is no label, and whose `valid_mask` is `(1, H, W)` bool.
        """
        labels = from_numpy(results.pop(FIELD).astype(np.int64))[None]
        packed = super().transform(results)
        sample = packed['data_samples']
        sample.valid_mask = PixelData(data=labels != _FILLED)
        sample.pseudo_sem_seg = PixelData(data=labels.masked_fill(labels == _UNLABELED, 255))
        return packed
