"""Draws a scene instead of loading an image."""

from typing import Any

from mmcv.transforms import BaseTransform
from mmseg.registry import TRANSFORMS

from mmseg_cct.datasets.shapes_backend import scene_address
from mmseg_cct.datasets.shapes_scene import draw_scene


@TRANSFORMS.register_module()
class DrawShapesScene(BaseTransform):
    """Draws the scene of a `ShapesDataset` data info instead of loading files.

    Adds ``img`` (BGR, as MMSeg loads images), ``img_shape``, ``ori_shape``, ``img_path`` (an
    address that mmengine reads), and ``gt_seg_map`` if the mask is wanted.

    Args:
        with_seg_map: Whether to add the class ids; an unlabelled image has none.
    """

    def __init__(self, with_seg_map: bool = True) -> None:
        self.with_seg_map = with_seg_map

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        """Adds the image, and the mask if wanted, to a data info in place."""
        image, seg_map = draw_scene(*results['scene'])
        results['img'] = image.copy()
        results['img_path'] = scene_address(*results['scene'])
        results['img_shape'] = results['ori_shape'] = image.shape[:2]
        if self.with_seg_map:
            results['gt_seg_map'] = seg_map.copy()
            results['seg_fields'].append('gt_seg_map')
        return results

    def __repr__(self) -> str:
        """Returns the transform's name and arguments."""
        return f'{type(self).__name__}(with_seg_map={self.with_seg_map})'
