"""FixMatch: the main decoder learns the confident predictions on weak views on strong views."""

from collections.abc import Sequence
from typing import Any

from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from mmseg.utils import add_prefix
from torch import Tensor

from mmseg_cct.models.losses import PseudoTargets

from .cct import CCTSegmentor
from .strong_views import StrongViewSegmentor


@MODELS.register_module()
class FixMatchSegmentor(StrongViewSegmentor):
    """FixMatch (https://arxiv.org/abs/2001.07685), the base of its successors::

        model = dict(
            type='FixMatchSegmentor',
            auxiliary_head=None,
            loss_strong=dict(type='ConfidentCrossEntropy', threshold=0.95),
            cutmix=dict(type='CutMix'),
        )

    Args:
        loss_strong: Config of a `ConfidentCrossEntropy` or `ConfidentMSE`; its `loss_weight` is
            λ_s.
        cutmix: As in `StrongViewSegmentor`.
        **kwargs: Arguments of `CCTSegmentor`, without auxiliary decoders.
    """

    num_banks = (0,)
    training_only = (*CCTSegmentor.training_only, 'loss_strong')

    def __init__(self, loss_strong: dict, cutmix: dict | None = None, **kwargs: Any) -> None:
        super().__init__(cutmix, **kwargs)
        self.loss_strong = MODELS.build(loss_strong)

    def loss(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes L = L_s + λ_s · mean of the strong views' losses; see `strong_loss`."""
        # labelled images: L_s
        losses = self.labeled_loss(inputs, data_samples)

        # weak views: the target ŷ, a constant; strong views: z
        weak = self.predict_weak(inputs, data_samples)
        views, boxes = self.mix_strong(inputs)
        z_strong = self.encode_strong(views)

        # the main decoder on the strong views: their mean
        pseudo = self.loss_strong.targets(weak.seg_logits, weak.valid)
        losses.update(self.strong_loss(z_strong, boxes, pseudo))
        return losses

    def strong_loss(
        self,
        features: Sequence[Sequence[Tensor]],
        boxes: Sequence[Tensor | None],
        pseudo: PseudoTargets,
    ) -> dict[str, Tensor]:
        """Computes λ_s times the mean of the strong views' losses, `strong.loss`.

        Each view has the neck's outputs and the boxes by which it is mixed. The log gets the
        unweighted mean and the share of real pixels that count.
        """
        views = zip(map(self.main_logits, features), map(pseudo.mix, boxes))
        by_view = [self.loss_of(seg_logits, targets) for seg_logits, targets in views]
        mean = sum(by_view) / len(by_view)
        strong = dict(loss=self.loss_strong.loss_weight * mean, unweighted=mean.detach())
        strong['pixels'] = pseudo.weight.sum() / pseudo.valid.sum().clamp(min=1)
        return add_prefix(strong, 'strong')

    def loss_of(self, seg_logits: Tensor, pseudo: PseudoTargets) -> Tensor:
        """Compares a prediction, resized to the images, with its targets; without λ_s."""
        return self.loss_strong(self.resized(seg_logits, pseudo.valid.shape[-2:]), pseudo)
