"""CamVid with the 11 classes of SegNet."""

from collections.abc import Sequence
from typing import Any

from mmseg.datasets import BaseSegDataset
from mmseg.registry import DATASETS

from mmseg_cct.datasets.files.image_files import resolve_list

VOID_ID = 11


@DATASETS.register_module()
class CamVidDataset(BaseSegDataset):
    """CamVid, 480×360, 11 classes; id 11 in its masks is void and ignored.

    Args:
        ann_file: List of image stems, relative to the working directory or to ``data_root``; if
            empty, every image of the folder is used.
        **kwargs: Further arguments of `BaseSegDataset`.
    """

    METAINFO = dict(
        classes=(
            'Sky', 'Building', 'Pole', 'Road', 'Pavement', 'Tree', 'SignSymbol', 'Fence', 'Car',
            'Pedestrian', 'Bicyclist',
        ),
        palette=[
            [128, 128, 128], [128, 0, 0], [192, 192, 128], [128, 64, 128], [60, 40, 222],
            [128, 128, 0], [192, 128, 128], [64, 64, 128], [64, 0, 128], [64, 64, 0],
            [0, 128, 192],
        ],
    )  # fmt: skip

    def __init__(self, ann_file: str = '', **kwargs: Any) -> None:
        super().__init__(ann_file=resolve_list(ann_file), **kwargs)

    @classmethod
    def get_label_map(cls, new_classes: Sequence[str] | None = None) -> dict[int, int]:
        """Maps mask ids to class ids, by default for all 11 classes; void becomes 255."""
        return {**(super().get_label_map(new_classes) or {}), VOID_ID: 255}
