"""Subclasses of components, registered and named in a config, train as the components do."""

import pytest
from mmengine.registry import HOOKS
from mmseg.registry import DATA_SAMPLERS, DATASETS, MODELS

from mmseg_cct.config.walk import get_by_key

BANK, PAIRS = 'model.auxiliary_head', 'train_dataloader.dataset'
BLOCKS, LOADED = ('data_preprocessor', 'neck', 'decode_head'), ('labeled', 'unlabeled')
COMPONENTS = {
    MODELS: ['model', *(f'model.{name}' for name in BLOCKS), BANK, f'{BANK}.loss_consistency'],
    DATASETS: [PAIRS, *(f'{PAIRS}.{name}' for name in LOADED), 'val_dataloader.dataset'],
    DATA_SAMPLERS: ['train_dataloader.sampler'],
    HOOKS: ['custom_hooks.1'],
}


def logged(run, name):
    """Trains two iterations, with a validation after each; gives what they log but the times."""
    run.train(name, {'train_cfg.max_iters': 2, 'train_cfg.val_interval': 1})
    lines = run.scalars(run.folder / name)
    assert list(lines) == [1, 2]
    return [{k: v for k, v in line.items() if 'time' not in k} for (line,) in lines.values()]


@pytest.mark.slow
def test_subclasses_train_the_same(cct):
    """The context's classes are named, so a training looks them up in the labelled set."""
    cct.config.model.auxiliary_head.context_classes = ('ground',)
    cct.write()
    expected = logged(cct, 'plain')
    for registry, keys in COMPONENTS.items():
        for part in (get_by_key(cct.config, key) for key in keys):
            mine = type(f'My{part.type}', (registry.get(part.type),), {})
            registry.register_module(module=mine, force=True)
            part.type = mine.__name__
    cct.write()
    assert logged(cct, 'mine') == expected
