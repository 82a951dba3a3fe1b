"""CCT+: strong views through the main decoder beside the auxiliary decoders of CCT."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.structures import PixelData
from mmseg.models.utils import resize
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from mmseg.utils import add_prefix
from torch import Tensor, cat, nn

from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.cutmix import paste
from mmseg_cct.models.layers.modes import eval_mode
from mmseg_cct.models.layers.sample_fields import stack_field
from mmseg_cct.models.losses import PseudoTargets

from .cct import CCTSegmentor
from .requirements import last_stage, require_pairs


@MODELS.register_module()
class CCTPlusSegmentor(CCTSegmentor):
    """`CCTSegmentor` whose main decoder also learns from strong views of the unlabelled images.

    Its parts combine to known methods: without `auxiliary_head` and with one view it is FixMatch
    (https://arxiv.org/abs/2001.07685), with two views and `feature_weight` UniMatch
    (https://arxiv.org/abs/2208.09910), with a `TeacherHook` and `channel_dropout` UniMatch V2
    (https://arxiv.org/abs/2410.10777). The auxiliary decoders never train the main one::

        model = dict(
            type='CCTPlusSegmentor',
            loss_strong=dict(type='ConfidentCrossEntropy', threshold=0.95),
            cutmix=dict(type='CutMix'),
        )
        train_dataloader = dict(dataset=dict(strong_views=dict(type='StrongViews', num_views=1)))

    Args:
        loss_strong: Config of a `ConfidentCrossEntropy` or `ConfidentMSE`; its `loss_weight` is
            λ_s; with 0 the main decoder learns from labels only.
        cutmix: Config of a `CutMix`, drawn for every view; None leaves images as they are.
        channel_dropout: Config of a `ComplementaryDropout` on z of two strong views.
        feature_weight: λ_f, the weight of UniMatch's feature stream, which drops half of the
            channels of the weak view's z.
        bank_on_strong: Whether the auxiliary decoders see the first strong view instead of the
            weak one.
        joint_batch: Whether labelled images and weak views form one batch in train mode, which also
            gives the target, as in UniMatch's public code; without effect if there is a teacher. By
            default they are encoded separately, and the target is predicted in eval mode.
        supervised_weight: w, the weight of L_s, the losses of the main decoder and of MMSeg's
            auxiliary heads on labelled images.
        **kwargs: Arguments of `CCTSegmentor`.
    """

    bank_is_optional = True
    training_only = (*CCTSegmentor.training_only, 'loss_strong')

    def __init__(
        self,
        loss_strong: dict,
        cutmix: dict | None = None,
        channel_dropout: dict | None = None,
        feature_weight: float = 0.0,
        bank_on_strong: bool = False,
        joint_batch: bool = False,
        supervised_weight: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.loss_strong = MODELS.build(loss_strong)
        self.cutmix = MODELS.build(cutmix) if cutmix else None
        self.channel_dropout = MODELS.build(channel_dropout) if channel_dropout else None
        self.feature_weight = feature_weight
        self.feature_dropout = nn.Dropout2d(0.5)
        self.bank_on_strong = bank_on_strong
        self.joint_batch = joint_batch
        self.supervised_weight = supervised_weight

    def loss(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes L = w L_s + λ_s · mean of the strong views' losses + λ_f L_f + ω_u L_u.

        Images `(N, 3, H, W)` are under 'labeled', 'unlabeled' and 'unlabeled_strong_0', ...; those
        that CutMix pastes, if they are not from the same batch, under 'unlabeled_partner' and
        'unlabeled_partner_strong_0', ... To the losses of `CCTSegmentor` this adds λ_s times the
        mean over views under `strong.loss` and λ_f L_f under `feature.loss`; the log also gets both
        unweighted, and the share of real pixels that count.
        """
        require_pairs(inputs, type(self).__name__)
        names = self._strong_names(inputs)
        weak, samples = inputs['unlabeled'], data_samples['unlabeled']
        size = weak.shape[-2:]

        # labelled images and weak views: L_s, z and the target ŷ
        dropped = None
        if self.joint_batch and self.teacher is None:
            losses, z_weak, target, dropped = self._learn_jointly(
                inputs['labeled'], data_samples['labeled'], weak
            )
        else:
            z_labeled = self.extract_feat(inputs['labeled'])
            losses = self.supervised_loss(z_labeled, data_samples['labeled'])
            z_weak = self._encode_weak(weak)
            target = self.predict_target(weak, z_weak)
        losses = scaled(losses, self.supervised_weight)
        target = self._resized(target, size)

        # strong views, each mixed by its own boxes: z of all of them from one batch
        partners = self._partners(inputs, data_samples)
        boxes = [self.cutmix(inputs[name]) if self.cutmix else None for name in names]
        others = [inputs.get(name.replace('unlabeled', 'unlabeled_partner', 1)) for name in names]
        mixed = [paste(inputs[name], *pasted) for name, *pasted in zip(names, boxes, others)]
        features = [z.chunk(len(names)) for z in self.extract_feat(cat(mixed))]
        z_strong = list(zip(*features))

        # auxiliary decoders on one of the views: L_u
        auxiliary = self.bank_loss(z_weak, z_strong[0], boxes[0], target, samples, partners)
        losses.update(add_prefix(auxiliary, 'aux'))

        # the main decoder on the strong views and, as in UniMatch, on the weak z: L_f
        if self.loss_strong.loss_weight or self.feature_weight:
            pseudo = self._targets(target, samples)
            pasted = None if partners is None else self._targets(*partners)
            strong = self.strong_loss(z_strong, boxes, pseudo, pasted)
            losses.update(add_prefix(strong, 'strong'))
            losses.update(add_prefix(self.feature_loss(z_weak, pseudo, dropped), 'feature'))
        return losses

    def bank_loss(
        self,
        weak: Sequence[Tensor],
        strong: Sequence[Tensor],
        boxes: Tensor | None,
        target: Tensor,
        samples: Sequence[SegDataSample],
        partners: tuple[Tensor, Sequence[SegDataSample]] | None = None,
    ) -> dict[str, Tensor]:
        """Computes the losses of the auxiliary decoders, if there are any.

        `weak` and `strong` are the neck's outputs for the weak and the first strong views, `boxes`
        `(N, 1, H, W)` where that view is mixed, and `target` ŷ of the weak views, logits
        `(N, C, H, W)`.
        """
        if not self.with_auxiliary_head:
            return {}
        features = weak
        if self.bank_on_strong:
            others, its_samples = partners or (None, None)
            features, target = strong, paste(target, boxes, others)
            samples = _mix_samples(samples, boxes, target.shape[-2:], its_samples)
        return self.auxiliary_head.loss(self.features_of_bank(features), target, samples)

    def strong_loss(
        self,
        features: Sequence[Sequence[Tensor]],
        boxes: Sequence[Tensor | None],
        pseudo: PseudoTargets,
        partners: PseudoTargets | None = None,
    ) -> dict[str, Tensor]:
        """Computes λ_s times the mean of the strong views' losses.

        Each view has the neck's outputs and, if it is mixed, boxes `(N, 1, H, W)`. `partners` are
        the targets of the images that are pasted; by default these are others of the batch. The log
        gets the unweighted mean and the share of real pixels that count.
        """
        if self.channel_dropout is not None:
            features = self.channel_dropout(*features)
        by_view = [
            self._loss_of(self.decode_head.forward(own), pseudo.mix(mixed, partners))
            for own, mixed in zip(features, boxes)
        ]
        mean = sum(by_view) / len(by_view)
        return dict(
            loss=self.loss_strong.loss_weight * mean,
            unweighted=mean.detach(),
            pixels=pseudo.weight.sum() / pseudo.valid.sum().clamp(min=1),
        )

    def feature_loss(
        self, features: Sequence[Tensor], pseudo: PseudoTargets, seg_logits: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Computes λ_f L_f, the loss on the weak z with some of its channels dropped.

        `seg_logits` are its prediction, if there is one already. The log gets L_f. The result is
        empty if λ_f is 0.
        """
        if not self.feature_weight:
            return {}
        if seg_logits is None:
            seg_logits = self.decode_head.forward([self.feature_dropout(z) for z in features])
        unweighted = self._loss_of(seg_logits, pseudo)
        return dict(loss=self.feature_weight * unweighted, unweighted=unweighted.detach())

    def _learn_jointly(
        self, images: Tensor, data_samples: list[SegDataSample], weak: Tensor
    ) -> tuple[dict[str, Tensor], Sequence[Tensor], Tensor, Tensor | None]:
        """Encodes and decodes labelled images and weak views as one batch.

        Returns L_s, the neck's outputs and ŷ of the weak views and, with λ_f, their prediction with
        some channels dropped: as in UniMatch's code, the whole batch is decoded in that way too.
        """
        if images.shape[1:] != weak.shape[1:]:
            raise UserError(
                'model.joint_batch',
                f'labelled images of {images.shape[-2]}×{images.shape[-1]} and unlabelled ones of '
                f'{weak.shape[-2]}×{weak.shape[-1]}',
                'one crop size',
            )
        # BatchNorm sees both kinds of images at once, as in the public code
        sizes = [len(images), len(weak)]
        features = self.extract_feat(cat([images, weak]))
        decoded = features
        if self.feature_weight:
            decoded, sizes = [cat([z, self.feature_dropout(z)]) for z in features], sizes * 2
        labeled, weak_logits, *dropped = _split(self.decode_head.forward(decoded), sizes)
        losses = add_prefix(self.decode_head.loss_by_feat(labeled, data_samples), 'decode')
        losses.update(self.losses_of_heads([z[: len(images)] for z in features], data_samples))
        weak_features = [z[len(images) :] for z in features]
        target = last_stage(weak_logits).detach()
        return losses, weak_features, target, dropped[-1] if dropped else None

    def _partners(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> tuple[Tensor, Sequence[SegDataSample]] | None:
        """Predicts, in eval mode, the images that CutMix pastes if they are a separate batch.

        Returns their logits `(N, C, H, W)` and samples.
        """
        if self.cutmix is None or 'unlabeled_partner' not in inputs:
            return None
        weak = inputs['unlabeled_partner']
        with torch.no_grad(), eval_mode(self.modules()):
            target = (self.teacher or self)._forward(weak)
        return self._resized(target, weak.shape[-2:]), data_samples['unlabeled_partner']

    def _targets(self, seg_logits: Tensor, samples: Sequence[SegDataSample]) -> PseudoTargets:
        valid = stack_field(samples, 'valid_mask', seg_logits.shape[-2:])
        return self.loss_strong.targets(seg_logits, valid)

    def _encode_weak(self, images: Tensor) -> Sequence[Tensor]:
        """Computes the neck's outputs for the weak views; empty if the student needs none."""
        bank_on_weak = self.with_auxiliary_head and not self.bank_on_strong
        learns = bank_on_weak or self.feature_weight > 0
        if self.teacher is not None and not learns:
            return ()
        with torch.set_grad_enabled(learns):
            return self.extract_feat(images)

    def _strong_names(self, inputs: dict[str, Tensor]) -> list[str]:
        names = sorted(name for name in inputs if name.startswith('unlabeled_strong_'))
        expected = 2 if self.channel_dropout is not None else 1
        if len(names) < expected or (self.channel_dropout is not None and len(names) > 2):
            raise UserError(
                'train_dataloader.dataset.unlabeled.pipeline',
                f'{len(names)} strong views',
                f'StrongViews(num_views={expected}) at its end, which {type(self).__name__} needs',
            )
        return names

    def _loss_of(self, seg_logits: Tensor, pseudo: PseudoTargets) -> Tensor:
        return self.loss_strong(self._resized(seg_logits, pseudo.valid.shape[-2:]), pseudo)

    def _resized(self, seg_logits: Tensor | Sequence[Tensor], size: tuple[int, int]) -> Tensor:
        """Resizes seg_logits `(N, C, ·, ·)`, of the last stage if there are several, to `size`."""
        seg_logits = last_stage(seg_logits)
        if seg_logits.shape[-2:] == size:
            return seg_logits
        align_corners = self.decode_head.align_corners
        return resize(seg_logits, size, mode='bilinear', align_corners=align_corners)


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


def _mix_samples(
    samples: Sequence[SegDataSample],
    boxes: Tensor | None,
    size: tuple[int, int],
    partners: Sequence[SegDataSample] | None = None,
) -> Sequence[SegDataSample]:
    """Makes the samples of mixed images, with mixed real pixels and pseudo labels, if any."""
    if boxes is None:
        return samples
    mixed = [SegDataSample(metainfo=sample.metainfo) for sample in samples]
    for name in ('valid_mask', 'pseudo_sem_seg'):
        values = stack_field(samples, name, size)
        others = None if partners is None else stack_field(partners, name, size)
        for sample, value in zip(mixed, () if values is None else paste(values, boxes, others)):
            sample.set_field(PixelData(data=value), name)
    return mixed
