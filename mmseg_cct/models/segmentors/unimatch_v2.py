"""UniMatch V2, of two strong views that share the channels of z."""

from typing import Any

from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor

from .fixmatch import FixMatchSegmentor
from .unimatch import scaled


@MODELS.register_module()
class UniMatchV2Segmentor(FixMatchSegmentor):
    """UniMatch V2 (https://arxiv.org/abs/2410.10777), with a `TeacherHook`.

    L = (L_s + ½ s₁ + ½ s₂) / 2, so λ_s of the mean of s₁ and s₂ is ½::

        model = dict(
            type='UniMatchV2Segmentor',
            auxiliary_head=None,
            loss_strong=dict(type='ConfidentCrossEntropy', threshold=0.95, loss_weight=0.5),
            cutmix=dict(type='CutMix'),
            channel_dropout=dict(type='ComplementaryDropout'),
        )

    Args:
        loss_strong: As in `FixMatchSegmentor`.
        channel_dropout: Config of a `ComplementaryDropout`.
        supervised_weight: w, the weight of L_s, all losses on labelled images.
        **kwargs: Arguments of `FixMatchSegmentor`.
    """

    num_views = 2

    def __init__(
        self,
        loss_strong: dict,
        channel_dropout: dict,
        supervised_weight: float = 0.5,
        **kwargs: Any,
    ) -> None:
        super().__init__(loss_strong, **kwargs)
        self.channel_dropout = MODELS.build(channel_dropout)
        self.supervised_weight = supervised_weight

    def loss(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes L = w L_s + λ_s · mean of the strong views' losses."""
        # labelled images: L_s
        losses = scaled(self.labeled_loss(inputs, data_samples), self.supervised_weight)

        # weak views: the target ŷ, a constant; strong views, each with one half of the channels
        weak = self.predict_weak(inputs, data_samples)
        views, boxes = self.mix_strong(inputs)
        # together the two halves have each channel once
        halves = self.channel_dropout(*self.encode_strong(views))
        pseudo = self.loss_strong.targets(weak.seg_logits, weak.valid)
        losses.update(self.strong_loss(halves, boxes, pseudo))
        return losses
