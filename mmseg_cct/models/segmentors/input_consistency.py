"""What the traditional consistency methods have in common, supplement A of the paper."""

from abc import abstractmethod
from typing import Any

from mmseg.models import EncoderDecoder
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor

from mmseg_cct.errors import UserError


class InputConsistencySegmentor(EncoderDecoder):
    """An `EncoderDecoder` whose predictions on unlabelled images shall resist a perturbation.

    Unlike CCT, it perturbs what comes before the encoder's output, and has one decoder. A subclass
    says what is compared. At inference it is a plain `EncoderDecoder`.

    Args:
        loss_consistency: Config of the distance, one of `losses/consistency.py`.
        **kwargs: Arguments of `EncoderDecoder`.
    """

    def __init__(self, loss_consistency: dict, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.loss_consistency = MODELS.build(loss_consistency)

    def loss(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes L = L_s + ω_u L_u.

        Args:
            inputs: Images `(N, 3, H, W)` under 'labeled' and 'unlabeled'.
            data_samples: Their samples, under the same keys.

        Returns:
            L_s under `decode.*`, ω_u L_u under `aux.loss`, and L_u for the log.

        Raises:
            UserError: If the batch has no labelled and unlabelled branch.
        """
        if not isinstance(inputs, dict):
            raise UserError(
                f'train_dataloader.dataset: {type(self).__name__} trains on pairs of a '
                'labelled and an unlabelled image; expected a SemiSegDataset with both'
            )
        features = self.extract_feat(inputs['labeled'])
        losses = self._decode_head_forward_train(features, data_samples['labeled'])
        consistency = self.loss_consistency(*self.compare(inputs['unlabeled']))
        losses['aux.loss'] = self.loss_consistency.loss_weight * consistency
        losses['aux.consistency'] = consistency.detach()
        return losses

    @abstractmethod
    def compare(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Predicts twice.

        Args:
            images: Unlabelled, normalised, `(N, 3, H, W)`.

        Returns:
            Logits `(N, C, h, w)` that learn, and the probabilities `(N, C, h, w)` they shall have,
            a constant.
        """
