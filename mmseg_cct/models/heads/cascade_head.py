"""Heads that refine one another's predictions, as one head."""

from collections.abc import Sequence
from typing import Any

import torch
from mmseg.models.decode_heads import PointHead
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from mmseg.utils import add_prefix
from torch import Tensor, nn


class CascadeHead(nn.ModuleList):
    """The heads of a `CascadeEncoderDecoder`, such as those of OCRNet and PointRend, as one.

    Its weights have the names that they have there, and its losses are the same.

    Args:
        heads: Configs of the heads; each but the first also gets the logits of the one before.
    """

    def __init__(self, heads: Sequence[dict]) -> None:
        super().__init__(MODELS.build(head) for head in heads)
        for name in ('align_corners', 'ignore_index', 'num_classes', 'out_channels', 'threshold'):
            setattr(self, name, getattr(self[-1], name))

    def loss(
        self, features: Sequence[Tensor], data_samples: list[SegDataSample], train_cfg: Any
    ) -> dict[str, Tensor]:
        """Computes the losses of all heads on labelled images, under `0.*`, `1.*` and so on."""
        first, *later = self
        losses = add_prefix(first.loss(features, data_samples, train_cfg), '0')
        seg_logits = first.forward(features)
        for index, head in enumerate(later, 1):
            loss = head.loss(features, seg_logits, data_samples, train_cfg)
            losses.update(add_prefix(loss, str(index)))
            if index < len(later):
                seg_logits = head.forward(features, seg_logits)
        return losses

    def predict(
        self, features: Sequence[Tensor], batch_img_metas: list[dict], test_cfg: Any
    ) -> Tensor:
        """Predicts seg_logits `(N, C, H, W)` of whole images."""
        first, *middle, last = self
        seg_logits = first.forward(features)
        for head in middle:
            seg_logits = head.forward(features, seg_logits)
        return last.predict(features, seg_logits, batch_img_metas, test_cfg)

    def refine(self, features: Sequence[Tensor], seg_logits: Tensor, test_cfg: Any) -> Tensor:
        """Refines seg_logits `(N, C, ·, ·)` of the first head by all others, one after the other.

        PointRend's, which classify single points, also enlarge them.
        """
        for head in [*self][1:]:
            if isinstance(head, PointHead):
                scale = test_cfg['scale_factor'] ** test_cfg['subdivision_steps']
                size = torch.Size(round(side * scale) for side in seg_logits.shape[-2:])
                metas = [dict(img_shape=size)]
                seg_logits = head.predict(features, seg_logits, metas, test_cfg)
            else:
                seg_logits = head.forward(features, seg_logits)
        return seg_logits
