"""SUN RGB-D with the 13 classes of Eigen et al. and SceneNet."""

from typing import Any

from mmseg.datasets import BaseSegDataset
from mmseg.registry import DATASETS

from mmseg_cct.datasets.files.image_files import resolve_list

CLASSES = (
    'Bed', 'Books', 'Ceiling', 'Chair', 'Floor', 'Furniture', 'Objects', 'Picture', 'Sofa', 'Table',
    'TV', 'Wall', 'Window',
)  # fmt: skip


@DATASETS.register_module()
class SUNRGBDDataset(BaseSegDataset):
    """SUN RGB-D, 13 classes; `mmseg-cct convert-sun-rgbd` writes its masks.

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
