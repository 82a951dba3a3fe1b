"""The paper's grid: a single perturbation, and all of them, with K decoders each.

All other variants are methods in `configs/methods`.
"""

import re
from collections.abc import Mapping
from typing import Any

from mmengine.config import Config

from mmseg_cct.config.compose import fill_perturbations, find_bank, read_method
from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import counted

# Merged into a config, as a method is.
Overlay = Mapping[str, Any]
# Labels of Figures 5 and 6, by the perturbation's name in configs.
PERTURBATIONS = {
    'feature_drop': 'F-Drop',
    'feature_noise': 'F-Noise',
    'dropout': 'DropOut',
    'guided_cutout': 'G-Cutout',
    'context_masking': 'Con-Msk',
    'object_masking': 'Obj-Msk',
    'vat': 'I-VAT',
}
FULL = {'full': 'CCT full', 'full_abce': 'CCT full + ab-CE'}


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


def grid_place(method: str) -> tuple[str | None, int]:
    """Parses `GROUP_kK`, a name of the grid, into group and K; (None, 0) for other methods."""
    match = re.fullmatch(r'(.+)_k(\d+)', method)
    return (match[1], int(match[2])) if match else (None, 0)


def group_title(group: str) -> str:
    return {**PERTURBATIONS, **FULL}.get(group, group)


def title_of(method: str) -> str:
    """Titles a method in figures: by its name, or by its place in the grid."""
    group, k = grid_place(method)
    return method if group is None else f'{group_title(group)}, K={k}'


def title_of_labels(labels: str) -> str:
    """Titles a panel by its number of labelled images; the config's own set needs no title."""
    return counted(int(labels), 'labelled image') if labels.isdigit() else ''
