"""Base class of the baselines with consistency on images, supplement A of the paper."""

from abc import abstractmethod
from typing import Any

from mmseg.models import EncoderDecoder
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor

from mmseg_cct.models.layers.sample_fields import stack_field

from .requirements import last_stage, require_one_output_per_class, require_pairs


class InputConsistencySegmentor(EncoderDecoder):
    """Penalises the distance between two predictions on an unlabelled image.

    Unlike CCT, it has one decoder and perturbs the image or the weights, not z. A subclass defines
    the pair of predictions. Inference is that of `EncoderDecoder`.

    Args:
        loss_consistency: Config of the distance, a `ConsistencyLoss`.
        **kwargs: Arguments of `EncoderDecoder`.
    """

    def __init__(self, loss_consistency: dict, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.loss_consistency = MODELS.build(loss_consistency)
        require_one_output_per_class(self.decode_head)

    def loss(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes L = L_s + ω_u L_u from images `(N, 3, H, W)` under 'labeled' and 'unlabeled'.

        L_s is under the keys of `EncoderDecoder`, ω_u L_u under `aux.loss` and L_u, for the log,
        under `aux.consistency`.
        """
        require_pairs(inputs, type(self).__name__)
        # labelled images, as `EncoderDecoder` learns them: L_s
        features = self.extract_feat(inputs['labeled'])
        losses = self._decode_head_forward_train(features, data_samples['labeled'])
        if self.with_auxiliary_head:
            losses.update(self._auxiliary_head_forward_train(features, data_samples['labeled']))

        # unlabelled images: the distance of the two predictions, L_u
        seg_logits, probabilities = self.predict_pair(inputs['unlabeled'])
        valid = stack_field(data_samples['unlabeled'], 'valid_mask', seg_logits.shape[-2:])
        consistency = self.loss_consistency(seg_logits, probabilities, valid)
        losses['aux.loss'] = self.loss_consistency.loss_weight * consistency
        losses['aux.consistency'] = consistency.detach()
        return losses

    def _forward(self, inputs: Tensor, data_samples: Any = None) -> Tensor:
        """Predicts logits; in training a head like that of K-Net gives those of each stage."""
        return last_stage(super()._forward(inputs, data_samples))

    @abstractmethod
    def predict_pair(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Returns student logits, with gradient, and target probabilities, without one.

        Images are unlabelled, normalised, `(N, 3, H, W)`; both results are `(N, C, s·h, s·w)`.
        """
