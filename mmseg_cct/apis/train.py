"""Prepares and runs a training."""

import os
from itertools import starmap
from pathlib import Path

from mmengine.config import Config
from mmseg.models.segmentors.base import BaseSegmentor

from mmseg_cct.config.compose import find_bank, training_sets
from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import method_in_name
from mmseg_cct.engine.checkpoints import newest_checkpoint
from mmseg_cct.engine.models import unwrap_model
from mmseg_cct.preflight.settings import fetch_pretrained_weights
from mmseg_cct.utils.log import say
from mmseg_cct.utils.processes import end_with_parent
from mmseg_cct.utils.text import command_line

from .prepare import TRAINING_STEPS, Request, prepare, require_keys
from .runner import run_config

__all__ = ['prepare_training', 'train']


def prepare_training(config_path: str, request: Request | None = None) -> Config:
    """Makes the config of a training run, fetches its weights and finds its checkpoint.

    Args:
        config_path: The config. Where options change `train_cfg.max_iters`, schedulers that ended
            at the old value end at the new one.
        request: What the training is asked for, by default nothing but the config.

    Returns:
        The config for `train`.

    Raises:
        UserError: A file is missing or does not fit, a setting is invalid, the settings do not fit
            the device, or the work directory holds another training or the config itself.
    """
    request = request or Request()
    config = load_config(config_path, request.options)
    needed = ('model', 'train_dataloader', 'train_cfg', 'optim_wrapper')
    require_keys(config, needed, 'a config for training')
    config = prepare(config, request, TRAINING_STEPS)
    fetch_pretrained_weights(config.model)
    return config


def train(config: Config) -> None:
    """Trains with a config of `prepare_training`."""
    if config.launcher != 'none':
        end_with_parent()
    model = unwrap_model(run_config(config, 'train', [config.work_dir]))
    is_first = config.launcher == 'none' or os.environ.get('RANK', '0') == '0'
    if is_first and isinstance(model, BaseSegmentor) and (commands := next_commands(config)):
        say('\n  '.join(['Next:', *commands]))


def next_commands(config: Config) -> tuple[str, ...]:
    """Commands that use and judge what a training has left, if there is something to test on."""
    if config.get('test_dataloader') is None or newest_checkpoint(config.work_dir) is None:
        return ()
    work_dir = Path(config.work_dir)
    name = method_in_name(config.filename) or work_dir.resolve().name
    if work_dir.is_relative_to(Path.cwd()):
        work_dir = work_dir.relative_to(Path.cwd())
    domain = next(iter(config.model.get('domains') or ()), None)
    options = () if domain is None else ('--domain', domain)
    commands: list[tuple] = [
        ('predict', work_dir, 'IMAGES', *options, '--out', work_dir / 'predictions'),
        ('report', f'{name}={work_dir}', *options, '--out', work_dir / 'report'),
    ]
    # decoders may choose among unlabelled images
    if find_bank(config) is not None and all(p.get('unlabeled') for p in training_sets(config)):
        commands.append(('next_batch', work_dir, *options, '--out', work_dir / 'batch'))
    return tuple(starmap(command_line, commands))
