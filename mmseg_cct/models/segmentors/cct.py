"""Cross-consistency training, Algorithm 1 of the paper."""

from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from mmseg.models.decode_heads.decode_head import BaseDecodeHead
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from mmseg.utils import add_prefix
from torch import Tensor, nn

from mmseg_cct.config.walk import as_list
from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.modes import (
    all_but_batch_norm,
    eval_mode,
    frozen_running_statistics,
    recorded_input,
)
from mmseg_cct.models.perturbations import DetectedObjects

from .any_decoder import AnyDecoderSegmentor, TakesTeacher, require_pairs


@MODELS.register_module()
class CCTSegmentor(TakesTeacher, AnyDecoderSegmentor):
    """`EncoderDecoder` that also learns from unlabelled images.

    `decode_head` is the main decoder g, trained on labelled images only; `auxiliary_head` holds
    the K auxiliary decoders, trained on unlabelled images to agree with g. It may be a list that
    also holds auxiliary heads of MMSeg, which are trained on labelled images as in `EncoderDecoder`
    and become `supervised_heads`. Inference and arguments are those of `EncoderDecoder`: configs of
    `backbone`, `neck`, `decode_head`, `auxiliary_head`, `data_preprocessor`, `train_cfg`,
    `test_cfg` and `init_cfg`. With a `TeacherHook`, an average of past weights predicts the target;
    it errs less and changes more slowly than the model's own prediction.

    Paper: https://arxiv.org/abs/2003.09005. Besides the two heads a config needs nothing new::

        model = dict(
            type='CCTSegmentor',
            decode_head=dict(type='PixelShuffleHead', in_channels=512, num_classes=21),
            auxiliary_head=dict(type='PerturbedDecoderBank', in_channels=512, num_classes=21),
        )

    Examples:
        >>> from mmengine.structures import PixelData
        >>> z = dict(in_channels=64, num_classes=5, stride=32)
        >>> bank = dict(z, type='PerturbedDecoderBank', context_classes=(0,), compile=False)
        >>> heads = dict(decode_head=dict(z, type='PixelShuffleHead'), auxiliary_head=bank)
        >>> model = CCTSegmentor(dict(type='ResNet', depth=18, base_channels=8), **heads)
        >>> mask = PixelData(data=torch.randint(5, (1, 64, 64)))
        >>> samples = dict(labeled=[SegDataSample(gt_sem_seg=mask)] * 2, unlabeled=[])
        >>> images = dict(labeled=torch.rand(2, 3, 64, 64), unlabeled=torch.rand(2, 3, 64, 64))
        >>> sorted(name for name in model.loss(images, samples) if 'loss' in name)
        ['aux.loss', 'decode.loss_ce']
    """

    # Parts that no prediction needs: a published checkpoint lacks their weights.
    training_only: tuple[str, ...] = ('auxiliary_head', 'supervised_heads')
    # How many banks of auxiliary decoders `auxiliary_head` may have.
    num_banks: tuple[int, ...] = (1,)

    def loss(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes L = L_s + ω_u L_u (+ ω_w L_w + λ_pw L_pw), Algorithm 1.

        `inputs` are images `(N, 3, H, W)` under 'labeled' and 'unlabeled'; others are ignored.
        """
        self.require_training_parts(inputs)
        target = objects = None
        if self.teacher is not None:
            # the teacher predicts first: while a GPU encodes, the host finds the objects
            images = inputs['unlabeled']
            target, size = self.predict_target(images, ()), (images.shape[-2], images.shape[-1])
            objects = self.auxiliary_head.detect(target, size, data_samples['unlabeled'])
        # z = h(x): labelled, then unlabelled images through the shared encoder
        features = {name: self.extract_feat(inputs[name]) for name in ('labeled', 'unlabeled')}
        return self.loss_by_feat(inputs, features, data_samples, target, objects)

    def loss_by_feat(
        self,
        inputs: dict[str, Tensor],
        features: dict[str, Sequence[Tensor]],
        data_samples: dict[str, list[SegDataSample]],
        target: Tensor | None = None,
        objects: DetectedObjects | None = None,
    ) -> dict[str, Tensor]:
        """Computes L from the neck's outputs, keyed like the images; z is `(N, D, h, w)`.

        `target` and its objects are those of the auxiliary decoders, if they are there already.

        L_s is under `decode.*`, and under `aux_0.*` and so on for MMSeg's auxiliary heads; ω_u L_u
        (+ ω_w L_w + λ_pw L_pw) under `aux.loss`, and each term unweighted for the log.
        """
        # ŷ = g(z) of labelled images: L_s
        losses = self.supervised_loss(features['labeled'], data_samples['labeled'])

        # ŷ of unlabelled images: the target, a constant
        if target is None:
            target = self.predict_target(inputs['unlabeled'], features['unlabeled'])

        # ŷ_a = g_a(p(z)) for each of the K perturbations p: L_u, L_w and L_pw
        unlabeled = data_samples['unlabeled']
        losses.update(self.auxiliary_loss(features['unlabeled'], target, unlabeled, objects))
        return losses

    def require_training_parts(self, inputs: dict[str, Tensor] | Tensor) -> None:
        """Checks that a batch has branches, and the model its auxiliary decoders, for a training.

        At inference the model is built without them.
        """
        require_pairs(inputs, type(self).__name__)
        if not self.with_auxiliary_head and 0 not in self.num_banks:
            self._reject_heads('none')

    def supervised_loss(
        self, features: Sequence[Tensor], data_samples: list[SegDataSample]
    ) -> dict[str, Tensor]:
        """Computes L_s from the neck's outputs for the labelled images.

        The losses of the main decoder are under `decode.*`, those of MMSeg's auxiliary heads under
        `aux_0.*` and so on.
        """
        losses = self._decode_head_forward_train(features, data_samples)
        for index, head in enumerate(self.supervised_heads):
            loss = head.loss(features, data_samples, self.train_cfg)
            losses.update(add_prefix(loss, f'aux_{index}'))
        return losses

    def auxiliary_loss(
        self,
        features: Sequence[Tensor],
        target: Tensor,
        data_samples: Sequence[SegDataSample],
        objects: DetectedObjects | None = None,
    ) -> dict[str, Tensor]:
        """Computes the losses of the auxiliary decoders under `aux.*`.

        `features` are the neck's outputs, the target logits `(N, C, ·, ·)`; `objects` are in it.
        """
        z = self.features_of_bank(features)
        return add_prefix(self.auxiliary_head.loss(z, target, data_samples, objects), 'aux')

    def predict_target(self, images: Tensor, features: Sequence[Tensor]) -> Tensor:
        """Predicts the target of the auxiliary decoders: `predict_unlabeled`, or the teacher's.

        Images are `(N, 3, H, W)`; a teacher does not need the neck's outputs for them.
        """
        if self.teacher is None:
            return self.predict_unlabeled(features)
        with torch.no_grad():
            return self.teacher._forward(images)

    def predict_unlabeled(self, features: Sequence[Tensor]) -> Tensor:
        """Predicts seg_logits `(N, C, ·, ·)` by the main decoder in eval mode; no gradient.

        It runs without dropout and normalises by its running statistics, which stay those of the
        labelled images. `features` are as the model made them: in training, backbone and neck
        normalise by the batch, so the target depends on the other images, and on drop path.
        """
        with torch.no_grad(), eval_mode(self.decode_head.modules()):
            return self.main_logits(features)

    def features_of_bank(self, features: Sequence[Tensor]) -> Sequence[Tensor]:
        """Computes the input of the auxiliary decoders from the neck's outputs; with gradient.

        Without an `in_layer` these are the features themselves; with one, that layer's input,
        computed without dropout. The main decoder's layers before `in_layer` count as part of the
        encoder: they normalise by the batch, as backbone and neck do, but their running statistics
        stay those of the labelled images.
        """
        name = self.auxiliary_head.in_layer
        if name is None:
            return features
        head = self.decode_head
        with (
            eval_mode(all_but_batch_norm(head)),
            frozen_running_statistics(head),
            recorded_input(head.get_submodule(name)) as inputs,
        ):
            self.main_logits(features)
        return tuple(inputs)

    def _init_auxiliary_head(self, auxiliary_head: dict | list | None) -> None:
        """Builds the auxiliary decoders and, separately, MMSeg's auxiliary heads."""
        self.supervised_heads = nn.ModuleList()
        if auxiliary_head is None:  # as at inference
            return
        heads = [MODELS.build(settings) for settings in as_list(auxiliary_head) if settings]
        self.supervised_heads.extend(h for h in heads if isinstance(h, BaseDecodeHead))
        banks = [head for head in heads if not isinstance(head, BaseDecodeHead)]
        if len(banks) not in self.num_banks:
            self._reject_heads(', '.join(type(head).__name__ for head in heads) or 'none')
        if banks:
            (self.auxiliary_head,) = banks

    def _reject_heads(self, names: str) -> NoReturn:
        number = 'one' if 1 in self.num_banks else 'no'
        expected = f'{number} PerturbedDecoderBank, and beside it any number of heads of MMSeg'
        raise UserError('model.auxiliary_head', names, expected)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        """Loads weights, also those that have the names of MMSeg's `EncoderDecoder`.

        It has a single auxiliary head under `auxiliary_head.*`, several under `auxiliary_head.0.*`
        and so on. The segmentor's own names win.
        """
        for index, head in enumerate(self.supervised_heads):
            for name in head.state_dict():
                key = f'{prefix}supervised_heads.{index}.{name}'
                mmseg_keys = [f'{prefix}auxiliary_head.{index}.{name}']
                if len(self.supervised_heads) == 1:
                    mmseg_keys.append(f'{prefix}auxiliary_head.{name}')
                for mmseg_key in mmseg_keys:
                    if key not in state_dict and mmseg_key in state_dict:
                        # popped, or a strict load would call it unexpected
                        state_dict[key] = state_dict.pop(mmseg_key)
        super()._load_from_state_dict(state_dict, prefix, *args)
