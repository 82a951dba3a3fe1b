"""Self-training: the main decoder learns masks of unknown quality on strong views."""

from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor

from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.sample_fields import stack_field
from mmseg_cct.models.losses import PseudoTargets

from .fixmatch import FixMatchSegmentor


@MODELS.register_module()
class SelfTrainingSegmentor(FixMatchSegmentor):
    """The supervised baseline that also learns masks which something else has predicted.

    They are the `weak_masks` of the training set, such as those of a preview, and stay as they are
    (https://arxiv.org/abs/2106.05095, without its second round)::

        model = dict(
            type='SelfTrainingSegmentor',
            auxiliary_head=None,
            loss_strong=dict(type='ConfidentCrossEntropy'),
            cutmix=dict(type='CutMix'),
        )
        train_dataloader = dict(dataset=dict(weak_masks='preview/masks'))

    Arguments are those of `FixMatchSegmentor`; the loss has no threshold to compare with.
    """

    def loss(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes L = L_s + λ_s · mean of the strong views' losses; see `strong_loss`."""
        # labelled images: L_s
        losses = self.labeled_loss(inputs, data_samples)

        # masks of the unlabelled images, of which 255 is left out
        pseudo = self.targets_of(data_samples['unlabeled'], inputs['unlabeled'])

        # the main decoder on the strong views, mixed like their masks
        views, boxes = self.mix_strong(inputs)
        losses.update(self.strong_loss(self.encode_strong(views), boxes, pseudo))
        return losses

    def targets_of(self, data_samples: list[SegDataSample], images: Tensor) -> PseudoTargets:
        """Takes the masks of images `(N, 3, H, W)` as targets.

        Raises:
            UserError: If there are none.
        """
        size = (images.shape[-2], images.shape[-1])
        masks, valid = (
            stack_field(data_samples, n, size) for n in ('pseudo_sem_seg', 'valid_mask')
        )
        if masks is None or valid is None:
            expected = '--weak-masks with the masks of a preview or other predictions'
            raise UserError('train_dataloader.dataset.weak_masks', 'missing', expected)
        weight = (masks != self.decode_head.ignore_index) & valid
        return PseudoTargets(masks.where(weight, 0), weight.float(), valid.float())
