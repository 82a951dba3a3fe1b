"""Bounding boxes of detected objects."""

import cv2
import numpy as np
import torch
from torch import Tensor

from mmseg_cct.models.layers.transfer import to_device


def bounding_boxes(foreground: Tensor, min_side: float) -> Tensor:
    """Bounding boxes of the 8-connected components of masks `(N, H, W)` bool.

    `(B, 5)` int64 on the masks' device: image, left, top, right, bottom; in pixels, right and
    bottom exclusive. A component less than `min_side` pixels wide or high is a speck of an
    uncertain prediction and gets no box. One copy brings the masks of all images to the host.
    """
    boxes = [np.empty((0, 5), dtype=np.int64)]
    for image, mask in enumerate(foreground.to(torch.uint8).cpu().numpy()):
        _, _, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
        left, top, width, height = stats[1:, :4].astype(np.int64).T  # row 0 is the background
        index = np.full_like(left, image)
        found = np.stack([index, left, top, left + width, top + height], axis=1)
        boxes.append(found[(width >= min_side) & (height >= min_side)])
    return to_device(torch.from_numpy(np.concatenate(boxes)), foreground.device)
