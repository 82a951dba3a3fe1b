"""Cross-consistency training on several domains, section 3.4 and supplement E of the paper."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mmengine.config import Config, ConfigDict
from mmengine.model import ModuleDict
from mmseg.models import BaseSegmentor, EncoderDecoder
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from mmseg.utils import add_prefix
from torch import Tensor

from mmseg_cct.errors import UserError
from mmseg_cct.models.data_preprocessors import MultiDomainPreprocessor, domain_of

from .cct import CCTSegmentor


@MODELS.register_module()
class MultiDomainCCTSegmentor(BaseSegmentor):
    """One encoder for several domains, each with its own decoders, classes and preprocessing.

    A batch is of one domain, which its samples name; its loss trains the encoder and the decoders
    of that domain. Without `auxiliary_head` it is the baseline: labelled images alone.

    `data_preprocessor`, `decode_head`, `auxiliary_head` and `test_cfg` are what the domains share;
    an entry of `domains` adds what is its own, under the same keys::

        domains=dict(
            camvid=dict(
                data_preprocessor=dict(size=(360, 480)),
                decode_head=dict(num_classes=11),
                auxiliary_head=dict(num_classes=11, context_classes=('Sky', 'Road'))),
            idd=dict(...))

    Args:
        backbone: Config of the backbone.
        domains: Each domain's own settings by its name.
        decode_head: Config of the main decoders.
        neck: Config of the neck.
        auxiliary_head: Config of the auxiliary decoders; None for the baseline.
        discriminator: Config of a `DomainDiscriminator`, which adds L_adv.
        train_cfg: As in `EncoderDecoder`.
        test_cfg: As in `EncoderDecoder`.
        data_preprocessor: Config of the preprocessors.
        pretrained: Not used; MMSeg's `init_model` sets it to None.
        init_cfg: Initialisation of the weights.

    Raises:
        UserError: If there is no domain, a name does not fit, or a domain sets an unknown key.
    """

    def __init__(
        self,
        backbone: dict,
        domains: Mapping[str, dict],
        decode_head: dict,
        neck: dict | None = None,
        auxiliary_head: dict | None = None,
        discriminator: dict | None = None,
        train_cfg: dict | None = None,
        test_cfg: dict | None = None,
        data_preprocessor: dict | None = None,
        pretrained: None = None,
        init_cfg: dict | list | None = None,
    ) -> None:
        check_domain_names(domains, 'model.domains')
        common: dict[str, Any] = dict(
            data_preprocessor=data_preprocessor or dict(type='BranchPreprocessor'),
            decode_head=decode_head,
            auxiliary_head=auxiliary_head,
            test_cfg=test_cfg or {},
        )
        settings: dict[str, dict[str, Any]] = {}
        for name, own in domains.items():
            if unknown := sorted(set(own) - set(common)):
                raise UserError(
                    f'model.domains.{name}.{unknown[0]}: no setting of a domain; '
                    f'expected {", ".join(common)}'
                )
            settings[name] = {key: merge_settings(common[key], own.get(key)) for key in common}

        super().__init__(
            MultiDomainPreprocessor(
                {name: cfg.pop('data_preprocessor') for name, cfg in settings.items()}
            ),
            init_cfg,
        )
        self.backbone = MODELS.build(backbone)
        self.neck = MODELS.build(neck) if neck else None
        self.domains = ModuleDict(
            {
                name: _DomainSegmentor(self.extract_feat, train_cfg=train_cfg, **cfg)
                for name, cfg in settings.items()
            }
        )
        self.discriminator = (
            MODELS.build(dict(discriminator, num_domains=len(domains))) if discriminator else None
        )

    @property
    def out_channels(self) -> int:
        """The most channels that a domain predicts; `SegTTAModel` asks whether it is above 1."""
        return max(domain.out_channels for domain in self.domains.values())

    def extract_feat(self, inputs: Tensor) -> Sequence[Tensor]:
        """Encodes images of any domain.

        Args:
            inputs: `(N, 3, H, W)`.

        Returns:
            The neck's outputs.
        """
        features = self.backbone(inputs)
        return features if self.neck is None else self.neck(features)

    def loss(self, inputs: dict[str, Tensor] | Tensor, data_samples: Any) -> dict[str, Tensor]:
        """Computes L = L_s + ω_u L_u + λ_adv L_adv, Eq. 8, on images of one domain.

        Args:
            inputs: Images `(N, 3, H, W)` under 'labeled' and 'unlabeled', or labelled ones alone.
            data_samples: Their lists of samples, under the same keys, or the labelled ones' alone.

        Returns:
            The losses of `CCTSegmentor` with this domain's decoders, and those of the
            discriminator under `adversarial.*`; all of them under the domain's name, as in
            `camvid.decode.loss_ce`, so that each domain has its own curves in the log.
        """
        if not isinstance(inputs, dict):
            inputs, data_samples = dict(labeled=inputs), dict(labeled=data_samples)
        name = domain_of(data_samples, self.domains)

        # the shared encoder, then Algorithm 1 with the decoders of this domain
        features = {branch: self.extract_feat(inputs[branch]) for branch in inputs}
        losses = self.domains[name].loss_of_decoders(features, data_samples)

        if self.discriminator is not None:
            adversarial = self.discriminator.loss(
                list(features.values()), list(self.domains).index(name)
            )
            losses.update(add_prefix(adversarial, 'adversarial'))
        return add_prefix(losses, name)

    def predict(self, inputs: Tensor, data_samples: list[SegDataSample]) -> list[SegDataSample]:
        """Predicts with the main decoder of the domain that the samples name.

        Args:
            inputs: `(N, 3, H, W)`.
            data_samples: N samples.

        Returns:
            The samples with `seg_logits` and `pred_sem_seg`.
        """
        return self._domain(data_samples).predict(inputs, data_samples)

    def encode_decode(self, inputs: Tensor, batch_data_samples: list[SegDataSample]) -> Tensor:
        """Computes logits at the size of the images.

        Args:
            inputs: `(N, 3, H, W)`.
            batch_data_samples: N samples.

        Returns:
            `(N, C, H, W)`, C the classes of the domain.
        """
        metas = [sample.metainfo for sample in batch_data_samples]
        return self._domain(batch_data_samples).encode_decode(inputs, metas)

    def _forward(self, inputs: Tensor, data_samples: list[SegDataSample] | None = None) -> Tensor:
        return self._domain(data_samples)._forward(inputs, data_samples)

    def _domain(self, data_samples: list[SegDataSample] | None) -> '_DomainSegmentor':
        return self.domains[domain_of(data_samples, self.domains)]


class _DomainSegmentor(CCTSegmentor):
    """The decoders of one domain: a `CCTSegmentor` whose encoder is the one of all domains.

    Args:
        extract_feat: The encoder, which is a part of the whole model and not of this one.
        decode_head: Config of the main decoder.
        auxiliary_head: Config of the auxiliary decoders; None for the baseline.
        train_cfg: As in `EncoderDecoder`.
        test_cfg: As in `EncoderDecoder`.
    """

    def __init__(
        self,
        extract_feat: Callable[[Tensor], Sequence[Tensor]],
        decode_head: dict,
        auxiliary_head: dict | None,
        train_cfg: dict | None,
        test_cfg: dict,
    ) -> None:
        # `EncoderDecoder` itself would build a backbone.
        super(EncoderDecoder, self).__init__()
        self.extract_feat = extract_feat
        self._init_decode_head(decode_head)
        self._init_auxiliary_head(auxiliary_head)
        self.train_cfg = train_cfg
        self.test_cfg = test_cfg

    def loss_of_decoders(
        self, features: dict[str, Sequence[Tensor]], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes the loss from the encoder's features on.

        Args:
            features: As in `CCTSegmentor`; the baseline needs no 'unlabeled'.
            data_samples: Likewise.

        Returns:
            As `CCTSegmentor`; of the baseline L_s alone.

        Raises:
            UserError: If there are auxiliary decoders and no unlabelled images for them.
        """
        if not self.with_auxiliary_head:
            return self._decode_head_forward_train(features['labeled'], data_samples['labeled'])
        if 'unlabeled' not in features:
            raise UserError(
                'train_dataloader.dataset.domains: the auxiliary decoders need '
                'unlabelled images; expected a SemiSegDataset with both, or '
                'model.auxiliary_head=None'
            )
        return super().loss_of_decoders(features, data_samples)


def check_domain_names(domains: Mapping[str, Any], key: str) -> None:
    """Checks that there are domains, and that their names fit those of weights and losses.

    Args:
        domains: Anything by name of the domain.
        key: Where they stand in the config.

    Raises:
        UserError: If there is none, or a name does not fit.
    """
    if not domains:
        raise UserError(f'{key}: empty; expected an entry for each domain')
    for name in domains:
        # ModuleDict refuses the names of its own methods; mmengine adds up every value whose name
        # has "loss" in it.
        if not name.isidentifier() or hasattr(ModuleDict, name) or 'loss' in name:
            raise UserError(
                f'{key}: a domain named {name!r}; expected letters, digits and _, not '
                'first a digit, and no word like keys, train or loss'
            )


def merge_settings(common: Mapping | None, own: Mapping | None) -> Any:
    """Merges a domain's own settings into those that all domains share.

    Args:
        common: Settings of all domains; None switches the component off.
        own: Settings of one domain, which win; None leaves the common ones as they are.

    Returns:
        The settings of the domain, a `ConfigDict`, or None.
    """
    if common is None:
        return None
    merged = Config(copy.deepcopy(dict(common)))
    merged.merge_from_dict(dict(own or {}))
    return ConfigDict(merged.to_dict())
