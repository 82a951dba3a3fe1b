"""Cross-consistency training, Algorithm 1 of the paper."""

from typing import Any

import torch
from mmengine.logging import print_log
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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_load_state_dict_post_hook(_excuse_auxiliary_head)

    def loss(self, inputs: dict[str, Tensor],
             data_samples: dict[str, list[SegDataSample]]) -> dict[str, Tensor]:
        """Computes L = L_s + ω_u L_u (+ ω_w L_w + λ_pw L_pw).

        Args:
            inputs: Images `(N, 3, H, W)` under 'labeled' and 'unlabeled'.
            data_samples: Their samples, under the same keys.

        Returns:
            L_s under `decode.*`, the weighted sum of the others under `aux.loss`, and each of them
            unweighted for the log.

        Raises:
            UserError: If the batch has no labelled and unlabelled branch.
        """
        if not isinstance(inputs, dict):
            raise UserError('train_dataloader.dataset: CCTSegmentor trains on pairs of a labelled '
                            'and an unlabelled image; expected a SemiSegDataset with both')
        # 1) labelled images through encoder and main decoder
        features = self.extract_feat(inputs['labeled'])
        losses = self._decode_head_forward_train(features, data_samples['labeled'])  # L_s

        # 2) unlabelled images through the shared encoder, 3) the main prediction, a constant
        features = self.extract_feat(inputs['unlabeled'])
        with torch.no_grad():
            seg_logits = self.decode_head.forward(features)

        # 4) auxiliary predictions on perturbed features, compared with the main one
        auxiliary = self.auxiliary_head.loss(features, seg_logits, data_samples['unlabeled'])
        losses.update(add_prefix(auxiliary, 'aux'))
        return losses


def _excuse_auxiliary_head(model: CCTSegmentor, incompatible_keys: Any) -> None:
    """Loads a published checkpoint, which has no auxiliary decoders, without a warning."""
    if not model.with_auxiliary_head:
        return
    names = {f'auxiliary_head.{name}' for name in model.auxiliary_head.state_dict()}
    missing = incompatible_keys.missing_keys
    if names and names <= set(missing):
        missing[:] = [name for name in missing if name not in names]
        print_log('The checkpoint has no auxiliary decoders: predictions do not need them, a '
                  'training starts with new ones', logger='current')
