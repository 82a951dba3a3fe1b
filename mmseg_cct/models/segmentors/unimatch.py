"""UniMatch, of two strong views and a stream of perturbed features."""

from typing import Any

from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor, nn

from .fixmatch import FixMatchSegmentor


@MODELS.register_module()
class UniMatchSegmentor(FixMatchSegmentor):
    """UniMatch (https://arxiv.org/abs/2208.09910).

    L = (L_s + ¼ s₁ + ¼ s₂ + ½ f) / 2, so λ_s of the mean of s₁ and s₂ is ¼::

        model = dict(
            type='UniMatchSegmentor',
            auxiliary_head=None,
            loss_strong=dict(type='ConfidentCrossEntropy', threshold=0.95, loss_weight=0.25),
            cutmix=dict(type='CutMix'),
        )
        train_dataloader = dict(dataset=dict(strong_views=dict(type='StrongViews', num_views=2)))

    Args:
        loss_strong: As in `FixMatchSegmentor`.
        supervised_weight: w, the weight of L_s, all losses on labelled images.
        feature_weight: λ_f, the weight of f, the loss on the weak view's z without half of its
            channels.
        **kwargs: Arguments of `FixMatchSegmentor`.
    """

    def __init__(
        self,
        loss_strong: dict,
        supervised_weight: float = 0.5,
        feature_weight: float = 0.25,
        **kwargs: Any,
    ) -> None:
        super().__init__(loss_strong, **kwargs)
        self.supervised_weight = supervised_weight
        self.feature_weight = feature_weight
        self.feature_dropout = nn.Dropout2d(0.5)

    def loss(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes L = w L_s + λ_s · mean of the strong views' losses + λ_f f."""
        # labelled images: L_s
        losses = scaled(self.labeled_loss(inputs, data_samples), self.supervised_weight)

        # weak views: z, and the target ŷ, a constant; strong views: z
        weak = self.predict_weak(inputs, data_samples, learns=True)
        views, boxes = self.mix_strong(inputs)
        z_strong = self.encode_strong(views)

        # the main decoder on the strong views: their mean
        pseudo = self.loss_strong.targets(weak.seg_logits, weak.valid)
        losses.update(self.strong_loss(z_strong, boxes, pseudo))

        # the main decoder on the weak z without half of its channels: f
        dropped = self.main_logits([self.feature_dropout(z) for z in weak.features])
        unweighted = self.loss_of(dropped, pseudo)
        losses['feature.loss'] = self.feature_weight * unweighted
        losses['feature.unweighted'] = unweighted.detach()
        return losses


def scaled(losses: dict[str, Tensor], weight: float) -> dict[str, Tensor]:
    """Scales the entries that mmengine sums: keys containing 'loss'."""
    return {name: value * weight if 'loss' in name else value for name, value in losses.items()}
