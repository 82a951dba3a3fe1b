"""Compares predictions with masks at a size other than the files'."""

import mmcv
from mmcv.transforms import BaseTransform
from mmseg.registry import TRANSFORMS


@TRANSFORMS.register_module()
class ScoreAtSize(BaseTransform):
    """Resizes a loaded mask, and makes its size the one that MMSeg resizes the prediction to.

    Comes after `LoadAnnotations` in a test pipeline. If no mask is loaded, as in MMSeg's inference,
    it changes nothing, and a prediction has the size of its image.

    Args:
        size: Height and width in pixels.
    """

    def __init__(self, size: tuple[int, int]) -> None:
        self.size = tuple(size)

    def transform(self, results: dict) -> dict:
        """Resizes `gt_seg_map`, if loaded, to `(H, W)` by nearest neighbour; sets `ori_shape`."""
        if (seg_map := results.get('gt_seg_map')) is not None:
            results['gt_seg_map'] = mmcv.imresize(seg_map, self.size[::-1], interpolation='nearest')
            results['ori_shape'] = self.size
        return results
