"""Con-Msk and Obj-Msk: masks guided by the main prediction."""

from mmseg.registry import MODELS
from torch import Tensor

from .base import PerturbationContext, SpatialMask


@MODELS.register_module()
class ContextMasking(SpatialMask):
    """Con-Msk: zeroes the context and keeps the detected objects.

    Args:
        num_decoders: k, the number of decoders with this perturbation; all see the same mask.
    """

    def __init__(self, num_decoders: int = 2) -> None:
        super().__init__(num_decoders)

    def mask(self, context: PerturbationContext) -> Tensor:
        return context.foreground_at_features.unsqueeze(0)


@MODELS.register_module()
class ObjectMasking(SpatialMask):
    """Obj-Msk: zeroes the detected objects and keeps the context.

    Args:
        num_decoders: k, the number of decoders with this perturbation; all see the same mask.
    """

    def __init__(self, num_decoders: int = 2) -> None:
        super().__init__(num_decoders)

    def mask(self, context: PerturbationContext) -> Tensor:
        return ~context.foreground_at_features.unsqueeze(0)
