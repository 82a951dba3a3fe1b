"""The student of self-training, which learns real masks and those of a teacher."""

from typing import Any

from mmengine.structures import PixelData
from mmseg.models import EncoderDecoder
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from mmseg.utils import add_prefix
from torch import Tensor

from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.cutmix import paste
from mmseg_cct.models.layers.sample_fields import stack_field
from mmseg_cct.utils.ranges import number, ranges

from .cct_plus import scaled
from .requirements import require_pairs


@MODELS.register_module()
class SelfTrainingSegmentor(EncoderDecoder):
    """`EncoderDecoder` that also learns masks predicted by another network, the teacher.

    The masks are the samples' `pseudo_sem_seg`, 255 where the teacher was unsure; the network sees
    the first strong view of these images. Every head applies its own losses to both kinds of masks,
    so any head of MMSeg works. `tools/self_train.py` makes the masks and composes the config::

        model = dict(type='SelfTrainingSegmentor', cutmix=dict(type='CutMix'))
        train_dataloader = dict(dataset=dict(strong_views=dict(type='StrongViews')))

    Paper: https://arxiv.org/abs/2106.05095 (ST++).

    Args:
        pseudo_weight: Weight of the losses on the teacher's masks.
        cutmix: Config of a `CutMix`, for image and mask alike; None leaves images as they are.
        **kwargs: Arguments of `EncoderDecoder`.

    Raises:
        UserError: If the unlabelled samples carry no masks when training starts.
    """

    @ranges(pseudo_weight=number(0, expected='a number from 0'))
    def __init__(
        self, pseudo_weight: float = 1.0, cutmix: dict | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.pseudo_weight = pseudo_weight
        self.cutmix = MODELS.build(cutmix) if cutmix else None

    def loss(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes L = L_s + λ L_p from images `(N, 3, H, W)` by branch.

        L_s is as in `EncoderDecoder`, from 'labeled'. λ L_p are the same losses under `pseudo.*`,
        from 'unlabeled_strong_0' or, without strong views, 'unlabeled'.
        """
        require_pairs(inputs, type(self).__name__)
        # labelled images: L_s
        losses = super().loss(inputs['labeled'], data_samples['labeled'])

        # a strong view of unlabelled images and the teacher's masks, mixed alike: L_p
        view = inputs.get('unlabeled_strong_0', inputs['unlabeled'])
        masks = stack_field(data_samples['unlabeled'], 'pseudo_sem_seg', view.shape[-2:])
        if masks is None:
            raise UserError(
                'train_dataloader.dataset.unlabeled.pipeline',
                'gives no pseudo masks',
                'LoadPseudoLabels and PackPseudoLabels, as tools/self_train.py sets them',
            )
        boxes = self.cutmix(view) if self.cutmix else None
        view, masks = paste(view, boxes), paste(masks, boxes)
        samples = [
            SegDataSample(metainfo=sample.metainfo, gt_sem_seg=PixelData(data=mask))
            for sample, mask in zip(data_samples['unlabeled'], masks)
        ]
        pseudo = scaled(super().loss(view, samples), self.pseudo_weight)
        losses.update(add_prefix(pseudo, 'pseudo'))
        return losses
