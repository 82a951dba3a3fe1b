"""Base class of the perturbations, and the context that they share in an iteration.

Shapes: `N` unlabelled images, `D` channels of z, `h×w` its size, `H×W` the image, `C` classes, `B`
channels of a decoder's projection, `k` decoders of one perturbation, `S` feature positions (all h·w
of them, or a random subset).
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property, reduce

import cv2
import numpy as np
import torch
from mmengine.model import BaseModule
from torch import Tensor

from mmseg_cct.models.layers.stacked_decoders import DecoderGroup
from mmseg_cct.models.layers.transfer import to_device
from mmseg_cct.utils.ranges import at_least, ranges


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


class PerturbationContext:
    """Inputs of the perturbations of one iteration, each computed once.

    Args:
        features: z, `(N, D, h, w)`.
        seg_logits: `(N, C, H, W)` of the main decoder, detached.
        context_classes: Ids of the context classes; all others are objects.
        positions: `(S,)` indices into h·w that the losses look at; None for all.
    """

    def __init__(
        self,
        features: Tensor,
        seg_logits: Tensor,
        context_classes: Sequence[int],
        positions: Tensor | None = None,
    ) -> None:
        self.features = features
        self.seg_logits = seg_logits
        self.context_classes = list(context_classes)
        self.positions = positions
        self._boxes: dict[float, Tensor] = {}

    def at_positions(self, maps: Tensor) -> Tensor:
        """Flattens maps `(..., h, w)` to the positions that the losses look at, `(..., S)`."""
        flat = maps.flatten(-2)
        return flat if self.positions is None else flat[..., self.positions]

    @cached_property
    def chosen_features(self) -> Tensor:
        """`(N, D, S)`: z at the positions that the losses look at."""
        return self.at_positions(self.features)

    @cached_property
    def foreground(self) -> Tensor:
        """`(N, H, W)` bool: the detected objects; ties are context."""
        if not self.context_classes:
            return torch.ones_like(self.seg_logits[:, 0], dtype=torch.bool)
        # The overall maximum exceeds that of the context classes only where an object has it. This
        # avoids a copy of the objects' logits, which are nearly all.
        # Class by class: a list as an index would be copied to the GPU, which the host waits for.
        context = (self.seg_logits[:, class_id] for class_id in self.context_classes)
        return self.seg_logits.amax(1) > reduce(torch.maximum, context)

    @cached_property
    def foreground_at_features(self) -> Tensor:
        """`(N, h, w)` bool: `foreground` at the first pixel of each position (nearest resizing)."""
        stride = self.seg_logits.shape[-1] // self.features.shape[-1]
        return self.foreground[:, ::stride, ::stride]

    def boxes(self, min_side: float) -> Tensor:
        """Finds the bounding boxes of the detected objects, once for each least side.

        `(B, 5)` int64: image, left, top, right, bottom in pixels. `min_side`, the least width and
        height, is in feature positions.
        """
        if min_side not in self._boxes:
            stride = self.seg_logits.shape[-1] / self.features.shape[-1]
            self._boxes[min_side] = bounding_boxes(self.foreground, min_side * stride)
        return self._boxes[min_side]


class Perturbation(BaseModule):
    """Perturbation p of z and its projection by k decoders.

    A subclass implements `perturb`. It also overrides `project` if it can reach the same result
    without k perturbed copies of z.

    Args:
        num_decoders: k, the number of decoders with this perturbation; 0 switches it off.
    """

    @ranges(num_decoders=at_least(0))
    def __init__(self, num_decoders: int) -> None:
        super().__init__()
        self.num_decoders = num_decoders

    @abstractmethod
    def perturb(self, decoders: DecoderGroup, context: PerturbationContext) -> Tensor:
        """Draws k perturbed versions of z, `context.chosen_features`: z~ `(k, N, D, S)`.

        Adversarial perturbations use the k decoders.
        """

    def project(self, decoders: DecoderGroup, context: PerturbationContext) -> Tensor:
        """Perturbs z and applies each decoder's projection: `(k, N, B, S)`."""
        perturbed = self.perturb(decoders, context)
        return torch.matmul(decoders.projection.unsqueeze(1), perturbed)
