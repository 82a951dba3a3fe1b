"""UniMatch, of two strong views and a stream of perturbed features, and as its public code is."""

from collections.abc import Sequence
from typing import Any

from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from mmseg.utils import add_prefix
from torch import Tensor, cat, nn

from mmseg_cct.errors import UserError
from mmseg_cct.models.losses import PseudoTargets

from .fixmatch import FixMatchSegmentor
from .strong_views import WeakViews


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
        self.require_training_parts(inputs)
        # labelled images: L_s
        features = self.extract_feat(inputs['labeled'])
        losses = self.supervised_loss(features, data_samples['labeled'])
        losses = scaled(losses, self.supervised_weight)

        # weak views: z, and the target ŷ, a constant; strong views: z
        weak = self.predict_weak(inputs, data_samples, learns=True)
        views, boxes = self.mix_strong(inputs)
        z_strong = self.encode_strong(views)

        # the main decoder on the strong views: their mean
        pseudo = self.pseudo_labels(weak)
        losses.update(self.strong_loss(z_strong, boxes, pseudo))

        # the main decoder on the weak z without half of its channels: f
        dropped = self.decode_head.forward([self.feature_dropout(z) for z in weak.features])
        losses.update(self.feature_loss(dropped, pseudo))
        return losses

    def feature_loss(
        self, seg_logits: Tensor | Sequence[Tensor], pseudo: PseudoTargets
    ) -> dict[str, Tensor]:
        """Computes λ_f f, `feature.loss`, of the prediction without some channels; f is logged."""
        unweighted = self.loss_of(seg_logits, pseudo)
        stream = dict(loss=self.feature_weight * unweighted, unweighted=unweighted.detach())
        return add_prefix(stream, 'feature')


@MODELS.register_module()
class UniMatchPublicSegmentor(UniMatchSegmentor):
    """UniMatch as its public code runs it: labelled images and weak views are one batch.

    That batch is in train mode and also gives ŷ. To paste from a second batch, as the code does,
    set `train_dataloader.dataset.partners`. Arguments are those of `UniMatchSegmentor`.
    """

    def loss(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes L like `UniMatchSegmentor`."""
        self.require_training_parts(inputs)
        # labelled images, weak views and both without half of their channels, as in the code
        images, weak_images = inputs['labeled'], inputs['unlabeled']
        if images.shape[1:] != weak_images.shape[1:]:
            raise UserError(
                'model.type=UniMatchPublicSegmentor',
                f'labelled images of {images.shape[-2]}×{images.shape[-1]} and unlabelled ones of '
                f'{weak_images.shape[-2]}×{weak_images.shape[-1]}',
                'one crop size',
            )
        features = self.extract_feat(cat([images, weak_images]))
        both = [cat([z, self.feature_dropout(z)]) for z in features]
        sizes = [len(images), len(weak_images)] * 2
        labeled, weak_logits, _, dropped = _split(self.decode_head.forward(both), sizes)

        # L_s
        losses = self.decode_head.loss_by_feat(labeled, data_samples['labeled'])
        losses = add_prefix(losses, 'decode')
        of_labeled = [z[: len(images)] for z in features]
        losses.update(self.losses_of_heads(of_labeled, data_samples['labeled']))
        losses = scaled(losses, self.supervised_weight)

        # ŷ of the weak views and of the images to paste; strong views; f
        target = self.resized(weak_logits, weak_images.shape[-2:]).detach()
        partners = self.predict_partners(inputs, data_samples)
        weak = WeakViews((), target, data_samples['unlabeled'], partners)
        pseudo = self.pseudo_labels(weak)
        views, boxes = self.mix_strong(inputs)
        losses.update(self.strong_loss(self.encode_strong(views), boxes, pseudo))
        losses.update(self.feature_loss(dropped, pseudo))
        return losses


def scaled(losses: dict[str, Tensor], weight: float) -> dict[str, Tensor]:
    """Scales the entries that mmengine sums: keys containing 'loss'."""
    return {name: value * weight if 'loss' in name else value for name, value in losses.items()}


def _split(
    seg_logits: Tensor | list[Tensor] | tuple[Tensor, ...], sizes: list[int]
) -> Sequence[Tensor | Sequence[Tensor]]:
    """Splits a batch of logits, or those of each stage of a head like K-Net's."""
    if isinstance(seg_logits, Tensor):
        return seg_logits.split(sizes)
    parts = zip(*(stage.split(sizes) for stage in seg_logits))
    # a tuple, of a head of several branches, stays one: `last_stage` refuses it
    return [type(seg_logits)(stages) for stages in parts]
