"""Overlays for the paper's grid: a single perturbation, and all of them, with K decoders each.

All other variants are methods in `configs/methods`.
"""

from collections.abc import Mapping
from typing import Any

from mmengine.config import Config

from mmseg_cct.config.compose import fill_perturbations, find_bank, read_method
from mmseg_cct.errors import UserError

# Merged into a setting, as a method is.
Overlay = Mapping[str, Any]


def perturbations_of(config: Config) -> list[str]:
    bank = find_bank(config)
    if bank is None:
        raise UserError(
            config.filename, 'model.auxiliary_head has no PerturbedDecoderBank', 'a config of CCT'
        )
    fill_perturbations(bank)
    return list(bank.perturbations)


def only(config: Config, name: str, num_decoders: int) -> Overlay:
    """Makes the overlay of a single perturbation with K decoders."""
    names = perturbations_of(config)
    if name not in names:
        raise UserError(config.filename, f'no perturbation {name!r}', f'one of {", ".join(names)}')
    return _decoders({each: num_decoders if each == name else 0 for each in names})


def full(config: Config, num_decoders: int) -> Overlay:
    """Makes the overlay of K decoders of every perturbation, the paper's "CCT full"."""
    return _decoders(dict.fromkeys(perturbations_of(config), num_decoders))


def full_abce(config: Config, num_decoders: int) -> Overlay:
    """Makes the overlay of "CCT full" with the annealed bootstrapped cross-entropy."""
    abce, bank = read_method('cct-abce'), full(config, num_decoders)
    return {**abce, 'model': {**abce['model'], **bank['model']}}


def _decoders(numbers: Mapping[str, int]) -> Overlay:
    perturbations = {name: dict(num_decoders=number) for name, number in numbers.items()}
    return dict(model=dict(auxiliary_head=dict(perturbations=perturbations)))
