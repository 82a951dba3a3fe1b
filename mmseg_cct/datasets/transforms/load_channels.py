"""Loads images whose channels or bit depth differ from 8-bit RGB."""

from collections.abc import Sequence

import mmengine.fileio as fileio
import numpy as np
from mmcv.transforms import LoadImageFromFile
from mmseg.registry import TRANSFORMS

from mmseg_cct.datasets.files.images import decode_channels, named_if_unreadable, select_channels


@TRANSFORMS.register_module()
class LoadChannels(LoadImageFromFile):
    """Loads chosen channels of an image of any bit depth, in place of `LoadImageFromFile`.

    `LoadImageFromFile` turns every file into 8-bit RGB: it keeps 4 of 12 bits stored in 16, and
    multiplies colours by a fourth channel. `LoadChannels` is the first step of every pipeline, and
    `model.backbone` takes as many channels (see `MultiChannelBackbone`).

    Example: `dict(type='LoadChannels', channels=(0, 1, 2), value_range=(0, 4095))`

    Args:
        channels: Channels of the file, counted from 0, in the order in which the model gets them.
            A channel may be repeated: (0, 0, 0) turns a grey image into three channels.
        value_range: The values that become 0 and 255, such as (0, 4095) for 12 bits; values outside
            are clipped. `None` keeps 8-bit channels as they are.
        backend_args: Arguments of mmengine's file backend.
    """

    def __init__(
        self,
        channels: Sequence[int] = (0, 1, 2),
        value_range: tuple[float, float] | None = None,
        backend_args: dict | None = None,
    ) -> None:
        super().__init__(color_type='unchanged', backend_args=backend_args)
        self.channels = tuple(channels)
        self.value_range = value_range

    def decode(self, data: bytes) -> np.ndarray:
        """Decodes a file's content to `(H, W, C)`, uint8, or float32 in [0, 255] with a range.

        Three channels are BGR, as everywhere in MMSegmentation. A file without these channels
        raises `UnsuitableImage`; a corrupt one can raise nearly anything.
        """
        return select_channels(decode_channels(data), self.channels, self.value_range)

    def transform(self, results: dict) -> dict:
        """Adds `img`, `img_shape` and `ori_shape`.

        Raises:
            UserError: If the file is unreadable, lacks the channels, or has values that are NaN or
                infinite.
        """
        path = results['img_path']
        with named_if_unreadable(path, 'image'):
            image = self.decode(fileio.get(path, backend_args=self.backend_args))
        return {**results, 'img': image, 'img_shape': image.shape[:2], 'ori_shape': image.shape[:2]}
