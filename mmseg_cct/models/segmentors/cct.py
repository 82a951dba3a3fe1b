"""Cross-consistency training, Algorithm 1 of the paper."""

from collections.abc import Sequence

import torch
from mmseg.models import EncoderDecoder
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from mmseg.utils import add_prefix
from torch import Tensor

from .pairs import require_pairs
from .teacher import TakesTeacher


@MODELS.register_module()
class CCTSegmentor(TakesTeacher, EncoderDecoder):
    """`EncoderDecoder` that also learns from unlabelled images.

    `decode_head` is the main decoder g, trained on labelled images alone; `auxiliary_head` holds
    the K auxiliary decoders, trained on unlabelled images to agree with g. Inference is that of
    `EncoderDecoder`, whose arguments it takes. With a `TeacherHook` the target is the prediction
    of an average of past weights, which errs less and moves slower than the model's own.
    """

    def loss(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes L = L_s + ω_u L_u (+ ω_w L_w + λ_pw L_pw), Algorithm 1.

        Args:
            inputs: Images `(N, 3, H, W)` under 'labeled' and 'unlabeled'.
            data_samples: Their samples, under the same keys.

        Returns:
            As `loss_by_feat`.
        """
        require_pairs(inputs, type(self).__name__)
        # z = h(x): labelled, then unlabelled images through the shared encoder
        features = {branch: self.extract_feat(inputs[branch]) for branch in inputs}
        return self.loss_by_feat(inputs, features, data_samples)

    def loss_by_feat(
        self,
        inputs: dict[str, Tensor],
        features: dict[str, Sequence[Tensor]],
        data_samples: dict[str, list[SegDataSample]],
    ) -> dict[str, Tensor]:
        """Computes L from the encoder's output.

        Args:
            inputs: As in `loss`.
            features: The neck's outputs under the same keys; z is `(N, D, h, w)`.
            data_samples: As in `loss`.

        Returns:
            L_s under `decode.*`; ω_u L_u (+ ω_w L_w + λ_pw L_pw) under `aux.loss`, and each term
            unweighted for the log.
        """
        # ŷ = g(z) of labelled images: L_s
        losses = self._decode_head_forward_train(features['labeled'], data_samples['labeled'])

        # ŷ of unlabelled images: the target, a constant
        target = self.predict_target(inputs['unlabeled'], features['unlabeled'])

        # ŷ_a = g_a(p(z)) for each of the K perturbations p: L_u, L_w and L_pw
        auxiliary = self.auxiliary_head.loss(
            features['unlabeled'], target, data_samples['unlabeled']
        )
        losses.update(add_prefix(auxiliary, 'aux'))
        return losses

    @torch.no_grad()
    def predict_target(self, images: Tensor, features: Sequence[Tensor]) -> Tensor:
        """Predicts what the auxiliary decoders shall agree with.

        Args:
            images: Unlabelled, `(N, 3, H, W)`.
            features: The neck's outputs for them; z is `(N, D, h, w)`.

        Returns:
            ŷ = g(z) or, with a teacher, its prediction on the images: seg_logits `(N, C, H, W)`.
        """
        if not self._teacher:
            return self.decode_head.forward(features)
        (teacher,) = self._teacher
        return teacher._forward(images)
