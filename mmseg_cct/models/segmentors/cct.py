"""Cross-consistency training, Algorithm 1 of the paper."""

from collections.abc import Sequence

import torch
from mmseg.models import EncoderDecoder
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from mmseg.utils import add_prefix
from torch import Tensor

from mmseg_cct.errors import UserError


@MODELS.register_module()
class CCTSegmentor(EncoderDecoder):
    """An `EncoderDecoder` that also learns from unlabelled images.

    `decode_head` is the main decoder g, trained on labelled images alone; `auxiliary_head` holds
    the auxiliary decoders, trained to agree with it on unlabelled ones. At inference it is a plain
    `EncoderDecoder`. Takes the arguments of `EncoderDecoder`.
    """

    def loss(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes L = L_s + ω_u L_u (+ ω_w L_w + λ_pw L_pw).

        Args:
            inputs: Images `(N, 3, H, W)` under 'labeled' and 'unlabeled'.
            data_samples: Their samples, under the same keys.

        Returns:
            As `loss_of_decoders`.

        Raises:
            UserError: If the batch has no labelled and unlabelled branch.
        """
        if not isinstance(inputs, dict):
            raise UserError(
                'train_dataloader.dataset: CCTSegmentor trains on pairs of a labelled '
                'and an unlabelled image; expected a SemiSegDataset with both'
            )
        # 1) labelled, then unlabelled images through the shared encoder
        features = {branch: self.extract_feat(inputs[branch]) for branch in inputs}
        return self.loss_of_decoders(features, data_samples)

    def loss_of_decoders(
        self, features: dict[str, Sequence[Tensor]], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes the loss from the encoder's features on.

        Args:
            features: The neck's outputs under 'labeled' and 'unlabeled'; z is `(N, D, h, w)`.
            data_samples: The samples of the images, under the same keys.

        Returns:
            L_s under `decode.*`, the weighted sum of the others under `aux.loss`, and each of them
            unweighted for the log.
        """
        # 2) labelled images through the main decoder
        losses = self._decode_head_forward_train(
            features['labeled'], data_samples['labeled']
        )  # L_s

        # 3) the main prediction on unlabelled images, a constant
        with torch.no_grad():
            seg_logits = self.decode_head.forward(features['unlabeled'])

        # 4) auxiliary predictions on perturbed features, compared with the main one
        auxiliary = self.auxiliary_head.loss(
            features['unlabeled'], seg_logits, data_samples['unlabeled']
        )
        losses.update(add_prefix(auxiliary, 'aux'))
        return losses
