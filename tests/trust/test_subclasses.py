"""Subclasses of components, registered and named in a config, train as the components do."""

import pytest
from mmengine.registry import HOOKS
from mmseg.registry import DATA_SAMPLERS, DATASETS, MODELS

from mmseg_cct.config.walk import get_by_key
from mmseg_cct.datasets import FolderDataset, PairSampler, SemiSegDataset
from mmseg_cct.engine.hooks import RampUpHook
from mmseg_cct.models import (
    BranchPreprocessor,
    CCTSegmentor,
    PerturbedDecoderBank,
    PixelShuffleHead,
    PSPNeck,
)
from mmseg_cct.models.losses import MSEConsistency

BANK, PAIRS = 'model.auxiliary_head', 'train_dataloader.dataset'
COMPONENTS = [
    (MODELS, CCTSegmentor, 'model'),
    (MODELS, BranchPreprocessor, 'model.data_preprocessor'),
    (MODELS, PSPNeck, 'model.neck'),
    (MODELS, PixelShuffleHead, 'model.decode_head'),
    (MODELS, PerturbedDecoderBank, BANK),
    (MODELS, MSEConsistency, f'{BANK}.loss_consistency'),
    (DATASETS, SemiSegDataset, PAIRS),
    (DATASETS, FolderDataset, f'{PAIRS}.labeled'),
    (DATASETS, FolderDataset, f'{PAIRS}.unlabeled'),
    (DATASETS, FolderDataset, 'val_dataloader.dataset'),
    (DATA_SAMPLERS, PairSampler, 'train_dataloader.sampler'),
    (HOOKS, RampUpHook, 'custom_hooks.1'),
]


def logged(run, name):
    """Trains two iterations, with a validation after each; gives what they log but the times."""
    run.train(name, {'train_cfg.max_iters': 2, 'train_cfg.val_interval': 1})
    lines = run.scalars(run.folder / name)
    assert list(lines) == [1, 2]
    return [{k: v for k, v in line.items() if 'time' not in k} for (line,) in lines.values()]


def registered(registry, component):
    mine = type(f'My{component.__name__}', (component,), {})
    registry.register_module(module=mine, force=True)
    return mine.__name__


@pytest.mark.slow
def test_subclasses_train_the_same(cct):
    """The context's classes are named, so a training looks them up in the labelled set."""
    cct.config.model.auxiliary_head.context_classes = ('ground',)
    cct.write()
    expected = logged(cct, 'plain')
    for registry, component, key in COMPONENTS:
        get_by_key(cct.config, key)['type'] = registered(registry, component)
    cct.write()
    assert logged(cct, 'mine') == expected
