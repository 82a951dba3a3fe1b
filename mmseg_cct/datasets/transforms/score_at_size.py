"""Compares predictions with masks at another size than the files'."""

import mmcv
from mmcv.transforms import BaseTransform
from mmseg.registry import TRANSFORMS

from mmseg_cct.errors import UserError


@TRANSFORMS.register_module()
class ScoreAtSize(BaseTransform):
    """Resizes a loaded mask, and makes its size the one that MMSeg brings the prediction to.

    Comes after `LoadAnnotations` in a test pipeline. Where no mask is loaded, as in MMSeg's
    inference, it changes nothing: a prediction then has the size of its image.

    Args:
        size: Height and width in pixels.

    Raises:
        UserError: A side is below 1.
    """

    def __init__(self, size: tuple[int, int]) -> None:
        if min(size) < 1:
            raise UserError(f'ScoreAtSize.size={size}: expected height and width from 1')
        self.size = tuple(size)

    def transform(self, results: dict) -> dict:
        """Resizes `gt_seg_map`, if loaded, to `(H, W)` by nearest labels; sets `ori_shape`."""
        if results.get('gt_seg_map') is not None:
            results['gt_seg_map'] = mmcv.imresize(
                results['gt_seg_map'], self.size[::-1], interpolation='nearest'
            )
            results['ori_shape'] = self.size
        return results
