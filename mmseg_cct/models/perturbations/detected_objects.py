"""The objects in a main prediction, which G-Cutout, Con-Msk and Obj-Msk need.

Shapes: `N` unlabelled images, `H×W` their size, `C` classes, `B` boxes.
"""

from collections.abc import Sequence
from functools import reduce

import cv2
import numpy as np
import torch
from torch import Tensor

from mmseg_cct.models.layers.transfer import to_host


def bounding_boxes(masks: np.ndarray, min_side: float) -> Tensor:
    """Bounding boxes of the 8-connected components of masks `(N, H, W)` uint8.

    `(B, 5)` int64: image, left, top, right, bottom; in pixels, right and bottom exclusive. A
    component less than `min_side` pixels wide or high is a speck of an uncertain prediction and
    gets no box.
    """
    boxes = [np.empty((0, 5), dtype=np.int64)]
    for image, mask in enumerate(masks):
        _, _, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
        left, top, width, height = stats[1:, :4].astype(np.int64).T  # row 0 is the background
        index = np.full_like(left, image)
        corners = np.stack([index, left, top, left + width, top + height], axis=1)
        boxes.append(corners[(width >= min_side) & (height >= min_side)])
    return torch.from_numpy(np.concatenate(boxes))


class DetectedObjects:
    """The objects in a main prediction: their pixels and, found on the host, their boxes.

    The pixels are on their way to the host once this is made. A segmentor that makes it before it
    encodes lets the host find the boxes while a GPU encodes.

    Args:
        seg_logits: `(N, C, H, W)` of the main decoder, detached.
        context_classes: Ids of the context classes; all others are objects.
    """

    def __init__(self, seg_logits: Tensor, context_classes: Sequence[int]) -> None:
        self.seg_logits = seg_logits
        if not context_classes:
            self.foreground = torch.ones_like(seg_logits[:, 0], dtype=torch.bool)
        else:
            # The overall maximum exceeds that of the context classes only where an object has it,
            # ties are context. This avoids a copy of the objects' logits, which are nearly all.
            # Class by class: a list as an index would be copied to the GPU, and the host waits.
            context = (seg_logits[:, class_id] for class_id in context_classes)
            self.foreground = seg_logits.amax(1) > reduce(torch.maximum, context)
        self._on_host = to_host(self.foreground)
        self._boxes: dict[float, Tensor] = {}

    def boxes(self, min_side: float) -> Tensor:
        """Finds the bounding boxes `(B, 5)`, on the host, once for each least side in pixels."""
        if min_side not in self._boxes:
            self._boxes[min_side] = bounding_boxes(self._on_host().numpy().view(np.uint8), min_side)
        return self._boxes[min_side]
