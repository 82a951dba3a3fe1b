"""Estimates how long a written config trains on this machine."""

import copy
import datetime
import time

import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import DefaultScope
from mmengine.runner import Runner
from mmseg.registry import MODELS

from mmseg_cct.config.load import load_config
from mmseg_cct.config.walk import forget_initial_weights
from mmseg_cct.utils.log import only_warnings
from mmseg_cct.utils.text import error_line

_PAIRS = 2  # the fewest that batch normalization takes


def describe_training_time(config_file: str) -> str:
    """Times a few pairs of images, and says what that means for the whole training."""
    config = load_config(config_file, {})
    number, batch_size = config.train_cfg.max_iters, config.train_dataloader.batch_size
    try:
        with only_warnings():
            seconds = _seconds_of_pairs(copy.deepcopy(config)) * batch_size / _PAIRS
    except Exception as error:  # the config is written, and a training says what is wrong
        return f'no estimate of the time: {error_line(error, 120)}'
    hours = datetime.timedelta(seconds=round(number * seconds))
    return f'{number} iterations at about {seconds:.2g} s here: {hours}, without validations'


def _seconds_of_pairs(config: Config) -> float:
    """Times the second of two iterations of the fewest pairs, with random weights."""
    forget_initial_weights(config.model)
    loader = config.train_dataloader
    loader.update(batch_size=_PAIRS, num_workers=0, persistent_workers=False)
    with (
        DefaultScope.overwrite_default_scope(config.get('default_scope', 'mmseg')),
        torch.random.fork_rng(),
    ):
        model = revert_sync_batchnorm(MODELS.build(config.model)).to(get_device()).train()
        if hasattr(model, 'set_teacher'):
            model.set_teacher(copy.deepcopy(model).eval())
        batches = iter(Runner.build_dataloader(loader, seed=0))
        for _ in range(2):
            begun = time.perf_counter()
            batch = model.data_preprocessor(next(batches), True)
            loss, _ = model.parse_losses(model(**batch, mode='loss'))
            loss.backward()
            loss.item()  # a GPU has finished then
    return time.perf_counter() - begun
