"""A data set of synthetic scenes, which needs no download and no file."""

from collections.abc import Callable, Sequence
from typing import Any

import cv2
from mmcv.transforms import BaseTransform
from mmengine.fileio import BaseStorageBackend, register_backend
from mmseg.datasets import BaseSegDataset
from mmseg.registry import DATASETS, TRANSFORMS

from .shapes_scene import draw_scene

_SCHEME = 'shapes'


@DATASETS.register_module()
class ShapesDataset(BaseSegDataset):
    """Scenes drawn by number, without any file.

    A scene is a pure function of seed, number and size, so sets of disjoint numbers are disjoint.
    The pipeline begins with `DrawShapesScene`.

    Args:
        start: Number of the first scene.
        count: Number of scenes.
        seed: Seed of all scenes.
        size: Side of the scenes in pixels.
        pipeline: Transforms, the first one `DrawShapesScene`.
        indices: Which scenes to take: the first n, or those listed; `None` takes all.
        test_mode: Whether the set serves evaluation.
        lazy_init: Whether to list the scenes only on first use.
    """

    METAINFO = dict(
        classes=('background', 'disc', 'box', 'triangle', 'star', 'cross', 'ring'),
        palette=[
            [0, 0, 0], [225, 70, 60], [235, 215, 70], [80, 190, 90], [70, 205, 220], [70, 90, 220],
            [215, 80, 215],
        ],
    )  # fmt: skip

    def __init__(
        self,
        start: int,
        count: int,
        seed: int = 0,
        size: int = 64,
        pipeline: Sequence[dict | Callable] = (),
        indices: int | Sequence[int] | None = None,
        test_mode: bool = False,
        lazy_init: bool = False,
    ) -> None:
        self.start, self.count, self.seed, self.size = start, count, seed, size
        options = dict(indices=indices, test_mode=test_mode, lazy_init=lazy_init)
        super().__init__(pipeline=list(pipeline), **options)

    def load_data_list(self) -> list[dict]:
        """Lists the scenes; their data infos name no file."""
        return [
            dict(scene=(self.seed, number, self.size), seg_fields=[], reduce_zero_label=False)
            for number in range(self.start, self.start + self.count)
        ]


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
        seed, number, size = results['scene']
        image, seg_map = draw_scene(seed, number, size)
        # Copies, for later transforms write into them and the synthetic scenes are kept.
        results['img'] = image.copy()
        results['img_path'] = f'{_SCHEME}://{seed}/{size}/{number:06d}.png'
        results['img_shape'] = results['ori_shape'] = image.shape[:2]
        if self.with_seg_map:
            results['gt_seg_map'] = seg_map.copy()
            results['seg_fields'].append('gt_seg_map')
        return results


@register_backend(_SCHEME, prefixes=_SCHEME)
class ShapesBackend(BaseStorageBackend):
    """Draws the scene at an address, `shapes://SEED/SIZE/NUMBER.png`, instead of reading a file.

    MMSeg's visualization reads an image again from the `img_path` of its data sample.
    """

    def get(self, filepath: str) -> bytes:
        """Returns the scene at an address as a PNG."""
        seed, size, name = str(filepath).removeprefix(f'{_SCHEME}://').split('/')
        image, _ = draw_scene(int(seed), int(name.removesuffix('.png')), int(size))
        return cv2.imencode('.png', image)[1].tobytes()

    def get_text(self, filepath: str, encoding: str = 'utf-8') -> str:
        """Raises `NotImplementedError`: a scene is not text."""
        raise NotImplementedError(f'{filepath}: a synthetic scene is no text')
