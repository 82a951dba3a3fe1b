"""Marks and packs the pixels of an unlabelled image that no transform has filled in."""

import numpy as np
from mmcv.transforms import BaseTransform
from mmengine.structures import PixelData
from mmseg.datasets.transforms import PackSegInputs
from mmseg.registry import TRANSFORMS
from torch import from_numpy

from mmseg_cct.errors import UserError

# MMSeg's key of a mask: every transform moves it with the image, and it is the only seg field that
# `Pad` fills.
FIELD = 'gt_seg_map'


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
        """Adds `gt_seg_map`, `(H, W)` uint8 of ones, unless pseudo labels take its place.

        Raises:
            UserError: If no image is loaded.
        """
        if 'img' not in results:
            expected = 'it after LoadImageFromFile'
            raise UserError('unlabeled.pipeline', 'MarkValidPixels without an image', expected)
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
