"""The config that all runs of a study have in common."""

from typing import Any

from mmengine.config import Config

from mmseg_cct.apis.config import load_config
from mmseg_cct.apis.config_errors import check_config
from mmseg_cct.apis.config_rules import check_training
from mmseg_cct.errors import UserError

# What studies change, train and test.
_EXPECTED = {
    'train_dataloader.dataset.labeled': 'a SemiSegDataset, whose labelled images a study chooses',
    'train_cfg.max_iters': 'a training that counts iterations',
    'optim_wrapper': 'a config for training',
    'test_dataloader': 'images to test on',
}


def study_config(base: str, options: dict[str, Any]) -> Config:
    """Loads the config of a study, and checks it before any run is prepared.

    Args:
        base: Path of a CCT config.
        options: Settings to override, by dotted key.

    Returns:
        The config.

    Raises:
        UserError: It does not load, a setting cannot be, or it has no part that a study needs.
    """
    config = load_config(base, options)
    for key, expected in _EXPECTED.items():
        part: Any = config
        for name in key.split('.'):
            part = part.get(name) if hasattr(part, 'get') else None
        if part is None:
            raise UserError(f'{base}: no {key}; expected {expected}')
    check_config(config)
    check_training(config)
    return config
