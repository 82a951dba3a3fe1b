"""Examples in docstrings: what a user names first has one, and all of them hold."""

import doctest
import importlib
from pathlib import Path

import pytest
import torch

PROJECT = Path(__file__).parents[2]
# What a user's first config, script or session names.
NAMED_FIRST = {
    'annotations.importer': 'import_masks',
    'apis.predictor': 'Predictor',
    'config.load': 'load_config',
    'datasets.folder': 'FolderDataset',
    'datasets.samplers.pair_sampler': 'PairSampler',
    'datasets.semi_supervised': 'SemiSegDataset',
    'datasets.transforms.strong_views': 'StrongViews',
    'engine.hooks.ramp_up_hook': 'RampUpHook',
    'models.heads.perturbed_decoder_bank': 'PerturbedDecoderBank',
    'models.heads.pixel_shuffle_head': 'PixelShuffleHead',
    'models.losses.confident_ce': 'ConfidentCrossEntropy',
    'models.losses.auxiliary': 'ConsistencyLoss',
    'models.necks.psp_neck': 'PSPNeck',
    'models.perturbations.spatial_dropout': 'SpatialDropout',
    'models.segmentors.cct': 'CCTSegmentor',
}
FILES = [
    file.relative_to(PROJECT)
    for file in sorted((PROJECT / 'mmseg_cct').rglob('*.py'))
    if '>>> ' in file.read_text(encoding='utf-8')
]


@pytest.mark.parametrize('file', FILES, ids=str)
def test_the_examples_hold(file):
    torch.manual_seed(0)
    module = importlib.import_module('.'.join(file.with_suffix('').parts))
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(('module', 'name'), NAMED_FIRST.items())
def test_what_a_user_names_first_ends_its_docstring_with_an_example(module, name):
    documented = getattr(importlib.import_module(f'mmseg_cct.{module}'), name)
    *_, last = documented.__doc__.split('\n\n')
    assert last.strip().startswith('Examples:\n')
