"""Base class of the perturbations, and the context that they share in an iteration.

Shapes: `N` unlabelled images, `D` channels of z, `h×w` its size, `H×W` the image, `C` classes, `B`
channels of a decoder's projection, `k` decoders of one perturbation, `S` feature positions (all h·w
of them, or a random subset).
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property

import torch
from mmengine.model import BaseModule
from torch import Tensor

from mmseg_cct.models.layers.stacked_decoders import DecoderGroup

from .detected_objects import DetectedObjects


class PerturbationContext:
    """Inputs of the perturbations of one iteration, each computed once.

    Args:
        features: z, `(N, D, h, w)`.
        seg_logits: `(N, C, H, W)` of the main decoder, detached.
        context_classes: Ids of the context classes; all others are objects.
        positions: `(S,)` indices into h·w that the losses look at; None for all.
        objects: The objects in `seg_logits`, if they were detected before; by default they are when
            a perturbation asks for them.
    """

    def __init__(
        self,
        features: Tensor,
        seg_logits: Tensor,
        context_classes: Sequence[int],
        positions: Tensor | None = None,
        objects: DetectedObjects | None = None,
    ) -> None:
        self.features = features
        self.seg_logits = seg_logits
        self.context_classes = list(context_classes)
        self.positions = positions
        self._objects = objects

    def at_positions(self, maps: Tensor) -> Tensor:
        """Flattens maps `(..., h, w)` to the positions that the losses look at, `(..., S)`."""
        flat = maps.flatten(-2)
        return flat if self.positions is None else flat[..., self.positions]

    @cached_property
    def chosen_features(self) -> Tensor:
        """`(N, D, S)`: z at the positions that the losses look at."""
        return self.at_positions(self.features)

    @cached_property
    def objects(self) -> DetectedObjects:
        """The detected objects; ties of their scores with the context's are context."""
        return self._objects or DetectedObjects(self.seg_logits, self.context_classes)

    @cached_property
    def foreground_at_features(self) -> Tensor:
        """`(N, h, w)` bool: the objects at the first pixel of each position (nearest resizing)."""
        stride = self.seg_logits.shape[-1] // self.features.shape[-1]
        return self.objects.foreground[:, ::stride, ::stride]


class Perturbation(BaseModule):
    """Perturbation p of z and its projection by k decoders.

    A subclass implements `perturb`. It also overrides `project` if it can reach the same result
    without k perturbed copies of z.

    Args:
        num_decoders: k, the number of decoders with this perturbation; 0 switches it off.

    Attributes:
        projects_z: Whether `project` begins with Wz; a GPU projects those of all decoders at once.
    """

    projects_z = False

    def __init__(self, num_decoders: int = 2) -> None:
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
