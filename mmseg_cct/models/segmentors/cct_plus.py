"""CCT+: CCT and FixMatch at once."""

from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor

from .fixmatch import FixMatchSegmentor


@MODELS.register_module()
class CCTPlusSegmentor(FixMatchSegmentor):
    """CCT on the weak views; the main decoder learns from strong views, as in FixMatch.

    The auxiliary decoders never train the main one. Arguments are those of `FixMatchSegmentor`
    and the auxiliary decoders::

        model = dict(
            type='CCTPlusSegmentor',
            loss_strong=dict(type='ConfidentMSE'),
            cutmix=dict(type='CutMix'),
        )
    """

    num_banks = (1,)

    def loss(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes L = L_s + ω_u L_u + λ_s · mean of the strong views' losses."""
        # labelled images: L_s
        losses = self.labeled_loss(inputs, data_samples)

        # weak views: z, and the target ŷ, a constant; strong views: z
        weak = self.predict_weak(inputs, data_samples, learns=True)
        target, samples = weak.seg_logits, weak.samples
        objects = self.auxiliary_head.detect(target, target.shape[-2:], samples)
        views, boxes = self.mix_strong(inputs)
        z_strong = self.encode_strong(views)

        # auxiliary decoders on the weak views: L_u
        losses.update(self.auxiliary_loss(weak.features, target, samples, objects))

        # the main decoder on the strong views: their mean
        pseudo = self.loss_strong.targets(weak.seg_logits, weak.valid)
        losses.update(self.strong_loss(z_strong, boxes, pseudo))
        return losses
