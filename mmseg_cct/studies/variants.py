"""Variants of a CCT config for ablations.

`baseline`, `only` and `full` make the paper's grid; `VARIANTS` holds single changes by name.
"""

import copy
import inspect
from collections.abc import Callable
from typing import Any

from mmengine.config import Config, ConfigDict
from mmseg.models import EncoderDecoder
from mmseg.registry import DATASETS

from mmseg_cct.config.domains import merge_settings
from mmseg_cct.errors import UserError
from mmseg_cct.models.heads.perturbed_decoder_bank import PAPER_PERTURBATIONS
from mmseg_cct.models.segmentors.auxiliary_heads import split_settings

# Changes a config in place.
Variant = Callable[[Config], None]


def unchanged(config: Config) -> None:
    """Leaves a CCT config as it is."""


def baseline(config: Config) -> None:
    """Makes a CCT config train supervised: labelled images only, for as many iterations."""
    _bank(config)
    config.model.auxiliary_head = _heads_without_bank(config)
    _become(config, 'EncoderDecoder')
    config.train_dataloader.dataset.unlabeled = None
    config.custom_hooks = _hooks_without_bank(config)


def mean_teacher(config: Config) -> None:
    """Replaces CCT by Mean Teacher, with the same weight and ramp of the consistency loss."""
    _traditional(config, 'MeanTeacherSegmentor', 'MSEConsistency')
    config.custom_hooks = [
        *config.custom_hooks,
        ConfigDict(type='TeacherHook', decay=0.99, evaluate='teacher', batch_statistics=True),
    ]


def input_vat(config: Config) -> None:
    """Replaces CCT by VAT on images, with the same ramp and a tenth of the weight.

    With all of it VAT loses: its KL is larger than CCT's squared error and trains the main decoder.
    """
    _traditional(config, 'InputVATSegmentor', 'KLConsistency')
    config.model.epsilon = 2.0
    config.model.loss_consistency.loss_weight *= 0.1
    for hook in config.custom_hooks:
        if hook.get('attribute') == 'loss_consistency.loss_weight':
            hook.end *= 0.1


def only(name: str, num_decoders: int) -> Variant:
    """Makes a variant with a single perturbation.

    Args:
        name: Name of the perturbation in the config.
        num_decoders: K, the number of its decoders.

    Returns:
        A variant, which raises a `UserError` if the config has no such perturbation.
    """

    def change(config: Config) -> None:
        perturbations = _bank(config).perturbations
        if name not in perturbations:
            raise UserError(
                f'{config.filename}: no perturbation {name!r}; expected one of '
                f'{", ".join(perturbations)}'
            )
        for key, perturbation in perturbations.items():
            perturbation.num_decoders = num_decoders if key == name else 0

    return change


def full(num_decoders: int) -> Variant:
    """Makes a variant with K decoders of every perturbation, the paper's "CCT full"."""

    def change(config: Config) -> None:
        for perturbation in _bank(config).perturbations.values():
            perturbation.num_decoders = num_decoders

    return change


def abce(config: Config) -> None:
    """Replaces the main decoder's cross-entropy by ab-CE; η ramps from 1/C to 0.9 (Eq. 4)."""
    lowest = 1 / len(_classes(config))
    config.model.decode_head.loss_decode = [
        ConfigDict(type='BootstrappedCrossEntropy', threshold=lowest)
    ]
    ramp = dict(
        type='RampUpHook',
        attribute='decode_head.loss_decode.0.threshold',
        schedule='log',
        start=lowest,
        end=0.9,
        fraction=0.4,
    )
    config.custom_hooks = [*(config.get('custom_hooks') or []), ConfigDict(ramp)]


def both(*variants: Variant) -> Variant:
    """Applies several variants in order."""

    def change(config: Config) -> None:
        for variant in variants:
            variant(config)

    return change


def setting(**values: Any) -> Variant:
    """Makes a variant that merges settings into `model.auxiliary_head`."""

    def change(config: Config) -> None:
        bank = _bank(config)
        bank.update(merge_settings(bank, values, 'model.auxiliary_head'))

    return change


def target_of(decay: float | None) -> Variant:
    """Makes a variant whose target comes from another network.

    Args:
        decay: α of `TeacherHook`, 1e-6 for the student itself in eval mode; None for the student in
            training mode, the paper's.

    Returns:
        The variant.
    """

    def change(config: Config) -> None:
        _bank(config)
        config.custom_hooks = _hooks_without_teacher(config)
        if decay is not None:
            config.custom_hooks.append(ConfigDict(type='TeacherHook', decay=decay))

    return change


def _auxiliary_lr(config: Config) -> None:
    # The loss is a mean over K decoders and C classes, so each one's gradient is small.
    _bank(config)
    paramwise = ConfigDict(config.optim_wrapper.get('paramwise_cfg') or {})
    rules = paramwise.get('custom_keys') or {}
    # mmengine applies the longest key alone, and of equally long ones the first
    own = max((key for key in sorted(rules) if key in 'auxiliary_head.'), key=len, default='')
    rule = rules.get(own, {})
    rule = dict(rule, lr_mult=10 * rule.get('lr_mult', 1.0))
    paramwise.custom_keys = {**rules, 'auxiliary_head.': rule}
    config.optim_wrapper.paramwise_cfg = paramwise


def _vat_floor(config: Config) -> None:
    vat = _bank(config).perturbations.get('vat')
    if not vat or vat.get('num_decoders') == 0:
        raise UserError(
            f'{config.filename}: model.auxiliary_head.perturbations.vat has no decoders, so that '
            'vat_floor would repeat cct; expected num_decoders from 1'
        )
    vat.norm_floor = 1e-8


def _final_relu(config: Config) -> None:
    setting(final_activation=True)(config)
    if config.model.decode_head.type == 'PixelShuffleHead':  # MMSeg's heads have no such setting
        config.model.decode_head.final_activation = True


def _traditional(config: Config, segmentor: str, distance: str) -> None:
    loss = _bank(config).loss_consistency
    config.model.auxiliary_head = _heads_without_bank(config)
    _become(config, segmentor)
    config.model.loss_consistency = ConfigDict(loss, type=distance)
    for hook in config.get('custom_hooks') or []:  # what has moved from the bank to the model
        if hook.get('attribute', '').startswith('auxiliary_head.loss_consistency.'):
            hook.attribute = hook.attribute.removeprefix('auxiliary_head.')
    config.custom_hooks = _hooks_without_bank(config)


def _become(config: Config, segmentor: str) -> None:
    """Changes the segmentor, and keeps of its settings those that every segmentor takes."""
    taken = inspect.signature(EncoderDecoder.__init__).parameters.keys() | {'type', '_scope_'}
    for name in config.model.keys() - taken:  # a recipe's, such as `loss_strong`
        del config.model[name]
    config.model.type = segmentor


def _hooks_without_teacher(config: Config) -> list[ConfigDict]:
    """The hooks of a method that has no targets from CCT's teacher."""
    return [hook for hook in config.get('custom_hooks') or [] if hook.type != 'TeacherHook']


def _hooks_without_bank(config: Config) -> list[ConfigDict]:
    """The hooks of a method without auxiliary decoders: no teacher and no ramp of theirs."""
    return [
        hook
        for hook in _hooks_without_teacher(config)
        if not hook.get('attribute', '').startswith('auxiliary_head.')
    ]


VARIANTS: dict[str, Variant] = {
    'baseline': baseline,
    'baseline_abce': both(baseline, abce),
    'mean_teacher': mean_teacher,
    'input_vat': input_vat,
    'cct': unchanged,
    'own_target': target_of(None),
    'eval_target': target_of(1e-6),
    'ema_target': target_of(0.99),
    'abce': abce,
    'kl': setting(loss_consistency=dict(type='KLConsistency')),
    'js': setting(loss_consistency=dict(type='JSConsistency')),
    'confidence': setting(loss_consistency=dict(confidence_threshold=0.5)),
    'pairwise': setting(loss_pairwise=dict(type='PairwiseVariance', loss_weight=1.0)),
    'final_relu': _final_relu,
    'vat_floor': _vat_floor,
    'positions': setting(position_fraction=0.25),
    'auxiliary_lr': _auxiliary_lr,
}


def _bank(config: Config) -> ConfigDict:
    """The settings of the auxiliary decoders, their perturbations named."""
    _, bank = split_settings(config.model.get('auxiliary_head'))
    if bank is None:
        raise UserError(
            f'{config.filename}: model.auxiliary_head has no PerturbedDecoderBank; expected a '
            'config of CCT'
        )
    if bank.get('perturbations') is None:
        bank.perturbations = copy.deepcopy(PAPER_PERTURBATIONS)
    return bank


def _heads_without_bank(config: Config) -> Any:
    """MMSeg's own auxiliary heads; None without any."""
    return split_settings(config.model.get('auxiliary_head'))[0] or None


def _classes(config: Config) -> tuple[str, ...]:
    dataset = config.train_dataloader.dataset.labeled
    named = dataset.get('classes') or dataset.get('metainfo', {}).get('classes')
    return tuple(named or DATASETS.get(dataset.type).METAINFO['classes'])
