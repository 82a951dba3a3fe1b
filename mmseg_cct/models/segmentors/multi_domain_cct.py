"""Cross-consistency training on several domains, section 3.4 and supplement E of the paper."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mmengine.model import BaseModel, ModuleDict
from mmseg.models import BaseSegmentor
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from mmseg.utils import add_prefix
from torch import Tensor, nn

from mmseg_cct.config.domains import domain_settings
from mmseg_cct.errors import UserError
from mmseg_cct.models.data_preprocessors import MultiDomainPreprocessor, domain_of
from mmseg_cct.models.perturbations import DetectedObjects

from .any_decoder import TakesTeacher
from .cct import CCTSegmentor


@MODELS.register_module()
class MultiDomainCCTSegmentor(TakesTeacher, BaseSegmentor):
    """One encoder for several domains, each with its own decoders, classes and preprocessing.

    All images of a batch are of one domain, named in their samples; the loss trains the encoder
    and that domain's decoders. Without `auxiliary_head` it is the supervised baseline.

    `data_preprocessor`, `decode_head`, `auxiliary_head` and `test_cfg` hold the settings common to
    all domains; an entry of `domains` overrides them for one domain, under the same keys. A list of
    auxiliary heads is overridden by a list of the same length::

        domains=dict(
            camvid=dict(
                data_preprocessor=dict(size=(360, 480)),
                decode_head=dict(num_classes=11),
                auxiliary_head=dict(num_classes=11, context_classes=('Sky', 'Road'))),
            idd=dict(...))

    Args:
        backbone: Config of the backbone.
        domains: Settings of each domain, by its name.
        decode_head: Common config of the main decoders.
        neck: Config of the neck.
        auxiliary_head: Common config of the auxiliary decoders, or a list of it and MMSeg's
            auxiliary heads. None, or MMSeg's heads only, gives the supervised baseline.
        discriminator: Config of a `DomainDiscriminator`, which adds L_adv.
        train_cfg: As in `EncoderDecoder`.
        test_cfg: As in `EncoderDecoder`.
        data_preprocessor: Common config of the preprocessors.
        pretrained: Always None; MMSeg's `init_model` passes it.
        init_cfg: Initialisation of the weights.

    Raises:
        UserError: If a name would count as a loss, or a domain sets an unknown key or another
            number of auxiliary heads.
    """

    training_only = (*CCTSegmentor.training_only, 'discriminator')

    def __init__(
        self,
        backbone: dict,
        domains: Mapping[str, dict],
        decode_head: dict,
        neck: dict | None = None,
        auxiliary_head: dict | list | None = None,
        discriminator: dict | None = None,
        train_cfg: dict | None = None,
        test_cfg: dict | None = None,
        data_preprocessor: dict | None = None,
        pretrained: None = None,
        init_cfg: dict | list | None = None,
    ) -> None:
        for name in domains:
            if 'loss' in name:  # mmengine sums every logged value whose name contains it
                raise UserError('model.domains', f'a domain named {name!r}', 'no "loss" in a name')
        # a domain's own settings over the common ones
        common: dict[str, Any] = dict(data_preprocessor=data_preprocessor, test_cfg=test_cfg)
        common |= dict(decode_head=decode_head, auxiliary_head=auxiliary_head)
        settings = {name: domain_settings(common, cfg, name) for name, cfg in domains.items()}

        preprocessors = {name: cfg.pop('data_preprocessor') for name, cfg in settings.items()}
        super().__init__(MultiDomainPreprocessor(preprocessors), init_cfg)
        self.backbone = MODELS.build(backbone)
        self.neck = MODELS.build(neck) if neck else None
        stages = (self.backbone,) if self.neck is None else (self.backbone, self.neck)
        shared: dict[str, Any] = dict(
            backbone=dict(type=_SharedEncoder, stages=stages), train_cfg=train_cfg
        )
        parts = {name: _DomainSegmentor(**shared, **cfg) for name, cfg in settings.items()}
        self.domains = ModuleDict(parts)
        self.discriminator = None
        if discriminator:
            self.discriminator = MODELS.build(dict(discriminator, num_domains=len(domains)))

    def set_teacher(self, teacher: BaseModel) -> None:
        """Sets the network that predicts the targets; each domain gets its own part of it.

        The teacher is a copy of this segmentor with different weights, in eval mode.
        """
        super().set_teacher(teacher)
        for name, domain in self.domains.items():
            domain.set_teacher(teacher.domains[name])

    @property
    def out_channels(self) -> int:
        """Largest number of output channels of a domain; `SegTTAModel` checks if it is above 1."""
        return max(domain.out_channels for domain in self.domains.values())

    def extract_feat(self, inputs: Tensor) -> Sequence[Tensor]:
        """Encodes images `(N, 3, H, W)` of any domain into the neck's outputs."""
        features = self.backbone(inputs)
        return features if self.neck is None else self.neck(features)

    def loss(self, inputs: dict[str, Tensor] | Tensor, data_samples: Any) -> dict[str, Tensor]:
        """Computes L = L_s + ω_u L_u + λ_adv L_adv, Eq. 8, on images of one domain.

        Images `(N, 3, H, W)` are under 'labeled' and 'unlabeled', or are one tensor of labelled
        images; samples likewise. The losses are those of `CCTSegmentor` with this domain's
        decoders, and those of the discriminator under `adversarial.*`. All are prefixed with the
        domain's name, as in `camvid.decode.loss_ce`, so each domain has its own curves in the log.
        """
        if not isinstance(inputs, dict):
            inputs, data_samples = dict(labeled=inputs), dict(labeled=data_samples)
        name = domain_of(data_samples, self.domains)

        # the shared encoder, then Algorithm 1 with this domain's decoders
        branches = [branch for branch in ('labeled', 'unlabeled') if branch in inputs]
        features = {branch: self.extract_feat(inputs[branch]) for branch in branches}
        try:
            losses = self.domains[name].loss_by_feat(inputs, features, data_samples)
        except UserError as error:  # a part does not know whose it is
            prefix = f'model.domains.{name}.'
            raise error.renamed(lambda key: re.sub(r'^model\.', prefix, key)) from None

        # which domain is it? the encoder learns to hide it: L_adv
        if self.discriminator is not None:
            index = list(self.domains).index(name)
            adversarial = self.discriminator.loss(list(features.values()), index)
            losses.update(add_prefix(adversarial, 'adversarial'))
        return add_prefix(losses, name)

    def predict(self, inputs: Tensor, data_samples: list[SegDataSample]) -> list[SegDataSample]:
        """Predicts with the main decoder of the samples' domain."""
        return self._domain(data_samples).predict(inputs, data_samples)

    def encode_decode(self, inputs: Tensor, batch_data_samples: list[SegDataSample]) -> Tensor:
        """Computes logits `(N, C, H, W)` at the size of the images, C the classes of the domain."""
        metas = [sample.metainfo for sample in batch_data_samples]
        return self._domain(batch_data_samples).encode_decode(inputs, metas)

    def _forward(self, inputs: Tensor, data_samples: list[SegDataSample] | None = None) -> Tensor:
        return self._domain(data_samples)._forward(inputs, data_samples)

    def _domain(self, data_samples: list[SegDataSample] | None) -> '_DomainSegmentor':
        return self.domains[domain_of(data_samples, self.domains)]


class _SharedEncoder(nn.Module):
    """Encoder of all domains, used as the backbone of one domain.

    It does not register the encoder's modules, so each weight has one name in a checkpoint and the
    optimizer sees it once.
    """

    def __init__(self, stages: tuple[nn.Module, ...]) -> None:
        super().__init__()
        self._stages = stages  # a tuple registers no submodule

    def forward(self, images: Tensor) -> Sequence[Tensor]:
        """Maps images `(N, 3, H, W)` to the neck's outputs."""
        features = images
        for stage in self._stages:
            features = stage(features)
        return features


class _DomainSegmentor(CCTSegmentor):
    """Decoders of one domain on the encoder of all domains."""

    num_banks = (0, 1)

    def loss_by_feat(
        self,
        inputs: dict[str, Tensor],
        features: dict[str, Sequence[Tensor]],
        data_samples: dict[str, list[SegDataSample]],
        target: Tensor | None = None,
        objects: DetectedObjects | None = None,
    ) -> dict[str, Tensor]:
        """Computes L like `CCTSegmentor`; without auxiliary decoders only L_s."""
        if not self.with_auxiliary_head:
            return self.supervised_loss(features['labeled'], data_samples['labeled'])
        if 'unlabeled' not in features:
            problem = 'the auxiliary decoders need unlabelled images'
            expected = 'a SemiSegDataset with both, or model.auxiliary_head=None'
            raise UserError('train_dataloader.dataset.domains', problem, expected)
        return super().loss_by_feat(inputs, features, data_samples, target, objects)
