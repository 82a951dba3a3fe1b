"""Weight of a pixel by how many auxiliary decoders agree with its target."""

from dataclasses import dataclass

from mmseg.registry import MODELS
from torch import Tensor

from mmseg_cct.errors import UserError


@MODELS.register_module()
@dataclass(frozen=True)
class AgreementGate:
    """Weighs a pixel by the share of the K auxiliary decoders that choose the target's class.

    Each decoder sees z under another perturbation: where they disagree, the target lies near a
    decision boundary, whatever its confidence. Hashable by value, as a part of a `ChunkStep`.

    Args:
        threshold: Pixels with at least this share, in (0, 1], count fully and others not at all.
            None takes the share itself as weight.

    Raises:
        UserError: If the threshold is out of range.
    """

    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.threshold is not None and not 0 < self.threshold <= 1:
            raise UserError(f'AgreementGate.threshold={self.threshold}: expected a share in (0, 1]')

    def __call__(self, agreement: Tensor) -> Tensor:
        """Maps shares of the decoders that agree, of any shape, to weights in [0, 1]."""
        if self.threshold is None:
            return agreement
        # a share is a multiple of 1/K, and float32 rounds it
        return (agreement > self.threshold - 1e-6).to(agreement)
