"""What a main decoder of MMSegmentation predicts, as one map of logits, whatever its head returns.

Heads differ in what `forward` returns, and some in what it returns while training. A head of one's
own that needs an adapter registers it: `main_logits.register(MyHead)`, and `fused_layer` likewise.
"""

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import torch
from mmseg.models.decode_heads import (
    DAHead,
    DDRHead,
    EncHead,
    Mask2FormerHead,
    MaskFormerHead,
    PIDHead,
    PointHead,
)
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from mmseg.utils import add_prefix
from torch import Tensor, nn

from mmseg_cct.errors import UserError

__all__ = ['fused_layer', 'main_logits']


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


@singledispatch
def main_logits(head: nn.Module, features: Any, test_cfg: Any = None) -> Tensor:
    """Predicts seg_logits `(N, C, ·, ·)` by a main decoder, in training as at inference.

    `features` are the neck's outputs, of a model in either mode; `test_cfg` is the segmentor's. Of
    a head that returns the logits of each stage, as that of K-Net does, they are the last.

    Raises:
        UserError: The head returns a tuple, whose parts are of several branches, and no adapter
            knows which of them is the main one.
    """
    seg_logits = head.forward(features)
    if isinstance(seg_logits, tuple):
        problem = f'{type(head).__name__} returns a tuple of {len(seg_logits)} predictions'
        expected = 'one map of seg_logits, or a list of them with one for each stage'
        raise UserError('model.decode_head', problem, expected)
    return seg_logits[-1] if isinstance(seg_logits, list) else seg_logits


@main_logits.register(DAHead)
@main_logits.register(EncHead)
def _of_first_branch(head: DAHead | EncHead, features: Any, test_cfg: Any = None) -> Tensor:
    seg_logits = head.forward(features)
    return seg_logits[0] if isinstance(seg_logits, tuple) else seg_logits


@main_logits.register
def _of_context(head: DDRHead, features: Any, test_cfg: Any = None) -> Tensor:
    return head.cls_seg(head.head(_second_in_training(features)))


@main_logits.register
def _of_integral(head: PIDHead, features: Any, test_cfg: Any = None) -> Tensor:
    return head.i_head(_second_in_training(features), head.cls_seg)


@main_logits.register
def _of_cascade(head: CascadeHead, features: Any, test_cfg: Any = None) -> Tensor:
    return head.refine(features, main_logits(head[0], features, test_cfg), test_cfg)


@main_logits.register(Mask2FormerHead)
@main_logits.register(MaskFormerHead)
def _of_masks(
    head: Mask2FormerHead | MaskFormerHead, features: Sequence[Tensor], test_cfg: Any = None
) -> Tensor:
    """Computes log Σ_q p(c|q) m_q, normalised over the classes c; `(N, C, h, w)` of the masks m."""
    # MaskFormer looks up which pixels are padding: none, whatever the size of the images
    size = tuple(features[0].shape[-2:])
    samples = [SegDataSample(metainfo=dict(batch_input_shape=size, img_shape=size))]
    scores, masks = (parts[-1] for parts in head.forward(features, samples * len(features[0])))
    with torch.autocast(masks.device.type, enabled=False):  # 16 bits round small products to 0
        of_class, of_pixel = scores.float().softmax(-1)[..., :-1], masks.float().sigmoid()
        sums = torch.einsum('nqc,nqhw->nchw', of_class, of_pixel)
        return sums.clamp(min=torch.finfo(sums.dtype).tiny).log().log_softmax(1)


def _second_in_training(features: Any) -> Tensor:
    """Selects what DDRNet and PIDNet classify: at inference they give nothing else."""
    return features if isinstance(features, Tensor) else features[1]


@singledispatch
def fused_layer(head: nn.Module) -> str | None:
    """Names the layer of a main decoder whose input are the features that it has fused, if any."""
    return 'conv_seg' if hasattr(head, 'conv_seg') else None


@fused_layer.register
def _last_of_cascade(head: CascadeHead) -> str | None:
    names = ((index, fused_layer(stage)) for index, stage in enumerate(head))
    return next((f'{index}.{name}' for index, name in reversed([*names]) if name), None)


@fused_layer.register(Mask2FormerHead)
@fused_layer.register(MaskFormerHead)
def _of_pixel_decoder(head: Mask2FormerHead | MaskFormerHead) -> str | None:
    return 'pixel_decoder.mask_feature'
