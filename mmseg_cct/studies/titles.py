"""Titles of methods in figures and texts; custom methods and perturbations keep their names."""

import re

from mmseg_cct.utils.text import counted

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
METHODS = {
    'supervised-abce': 'supervised (ab-CE)',
    'mean-teacher': 'Mean Teacher',
    'input-vat': 'VAT on images',
    'cct': 'CCT',
    'cct-strong': 'CCT (strong view)',
    'cct-plus': 'CCT+',
    'fixmatch': 'FixMatch',
    'unimatch': 'UniMatch',
    'unimatch-tau0': 'UniMatch (τ = 0)',
    'unimatch-v2': 'UniMatch V2',
    'unimatch-public': 'UniMatch (joint batch)',
    'self-train': 'self-training',
    'own-target': 'CCT (own target)',
    'eval-target': 'CCT (eval mode)',
    'ema-target': 'CCT (EMA teacher)',
    'cct-abce': 'CCT + ab-CE',
    'kl': 'CCT (KL)',
    'js': 'CCT (JS)',
    'confidence': 'CCT (β = 0.5)',
    'pairwise': 'CCT (pairwise)',
    'final-relu': 'CCT (last ReLU)',
    'vat-floor': 'CCT (VAT floor)',
    'positions': 'CCT (¼ positions)',
    'auxiliary-lr': 'CCT (10 × rate)',
}


def grid_place(method: str) -> tuple[str | None, int]:
    """Parses `GROUP_kK`, a name of the grid, into group and K; (None, 0) for other methods."""
    match = re.fullmatch(r'(.+)_k(\d+)', method)
    return (match[1], int(match[2])) if match else (None, 0)


def group_title(group: str) -> str:
    return {**PERTURBATIONS, **FULL}.get(group, group)


def title_of_labels(labels: str) -> str:
    """Titles a panel by its number of labelled images; the config's own set needs no title."""
    return counted(int(labels), 'labelled image') if labels.isdigit() else ''


def title_of(method: str) -> str:
    group, k = grid_place(method)
    return METHODS.get(method, method) if group is None else f'{group_title(group)}, K={k}'
