"""F-Noise: multiplicative uniform noise."""

from mmseg.registry import MODELS
from torch import Tensor

from ..decoders import DecoderGroup
from .base import Perturbation, PerturbationContext


@MODELS.register_module()
class FeatureNoise(Perturbation):
    """z~ = z + z ⊙ n with n ~ U(-a, a); one noise tensor serves all images of the batch.

    Args:
        num_decoders: k.
        noise_range: a.
    """

    def __init__(self, num_decoders: int = 6, noise_range: float = 0.3) -> None:
        super().__init__(num_decoders)
        self.noise_range = noise_range

    def noise(self, features: Tensor) -> Tensor:
        """Draws 1 + n.

        Args:
            features: `(N, D, S)`; gives sizes, type and device.

        Returns:
            `(k, 1, D, S)` in [1 - a, 1 + a].
        """
        size = (self.num_decoders, 1, *features.shape[1:])
        return features.new_empty(size).uniform_(1 - self.noise_range, 1 + self.noise_range)

    def perturb(self, features: Tensor, decoders: DecoderGroup,
                context: PerturbationContext) -> Tensor:
        """See `Perturbation.perturb`."""
        return features * self.noise(features)
