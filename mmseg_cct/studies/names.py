"""What the command line of an ablation can name."""

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
