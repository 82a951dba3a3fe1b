"""Prepares and runs a training."""

import os
import sys
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmseg.models.segmentors.base import BaseSegmentor

from mmseg_cct.cli.commands import commands_after_training
from mmseg_cct.config.load import default_work_dir, load_config, protect
from mmseg_cct.config.shipped import method_in_name, next_round
from mmseg_cct.config.walk import get_by_key
from mmseg_cct.engine.checkpoints import find_resumable, newest_checkpoint, read_checkpoint
from mmseg_cct.engine.labels_record import LABELS
from mmseg_cct.engine.models import unwrap_model
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.pretrained import fetch_pretrained_weights
from mmseg_cct.utils.log import say
from mmseg_cct.utils.processes import end_with_parent

from .device import enable_amp, enable_compile, fit_to_device, fit_workers
from .runner import require_files_kept, require_outputs_outside, run_config

# What hooks write into the work directory besides checkpoints.
_WRITTEN = ('nonfinite_iter_*', LABELS)


def prepare_training(
    config_file: str,
    *,
    work_dir: str | None = None,
    resume: str | None = None,
    amp: bool = False,
    compile: bool = False,
    options: dict[str, Any] | None = None,
    launcher: str = 'none',
) -> Config:
    """Makes the config of a training run, fetches its weights and finds its checkpoint.

    Args:
        config_file: The config.
        work_dir: Where to write; by default the config's own `work_dir` or `work_dirs/<config>`.
        resume: `'auto'` for the latest checkpoint in the work directory, or a checkpoint file.
        amp: Whether to train in mixed precision.
        compile: Whether to compile the encoders (`CompileEncoderHook`).
        options: Settings of the config to override, by dotted key. Where they change
            `train_cfg.max_iters`, schedulers that ended at the old value end at the new one.
        launcher: What started the processes: `none`, `pytorch` or `slurm`.

    Returns:
        The config for `train`.

    Raises:
        UserError: A file is missing or does not fit, a setting is invalid, the settings do not fit
            the device, or the work directory holds another training or the config itself.
    """
    options = options or {}
    config = load_config(config_file, options)
    protect(config, options)
    config.work_dir = work_dir or config.get('work_dir') or default_work_dir(config)
    require_outputs_outside(config)
    for key in ('model', 'train_dataloader', 'train_cfg', 'optim_wrapper'):
        if config.get(key) is None:
            raise UserError(config_file, f'no {key}', 'a config for training')
    if amp:
        enable_amp(config)
    if compile:
        enable_compile(config)
    if resume is None and config.get('resume'):  # mmengine's `resume` skips our checks
        resume = config.get('load_from') or 'auto'
        config.resume = False
    template = get_by_key(config, 'default_hooks.checkpoint.filename_tmpl')
    newest = newest_checkpoint(config.work_dir, template)
    if newest is None:
        require_files_kept(config, _WRITTEN)
    elif resume is None:
        free = next_round(Path(config.work_dir))
        while free.exists():
            free = next_round(free)
        found = f'holds a training up to {os.path.basename(newest)}'
        ways = f'pass --resume to go on, or --work-dir {free} for a next round of labels'
        raise UserError(f'--work-dir {config.work_dir}', f'{found}; {ways}')
    if resume is not None:
        if resume == 'auto' and not os.path.isdir(config.work_dir):
            raise UserError(f'--work-dir {config.work_dir}', 'no such folder, so none to resume')
        # as mmengine does: `ResumeHook` finds the newest checkpoint
        config.load_from, config.resume = None if resume == 'auto' else resume, True
        if get_by_key(config, 'randomness.seed') is None:
            # mmengine restores a seed that it drew only after the samplers have taken a new one
            checkpoint = config.load_from or find_resumable(config.work_dir, template)
            content = {} if checkpoint is None else read_checkpoint(checkpoint, training=True)
            seed = (content.get('meta') or {}).get('seed')
            config.merge_from_dict({'randomness.seed': seed})
    # under one name, a process's second run would write into the files of its first
    (config.get('visualizer') or {}).pop('name', None)
    fetch_pretrained_weights(config.model)
    fit_workers(config, options)
    if sys.stderr.isatty():
        config.default_hooks.setdefault('progress_bar', dict(type='ProgressBarHook'))
    return fit_to_device(config, launcher)


def train(config: Config) -> None:
    """Trains with a config of `prepare_training`."""
    if config.launcher != 'none':
        end_with_parent()
    model = unwrap_model(run_config(config, 'train', [config.work_dir]))
    is_first = config.launcher == 'none' or os.environ.get('RANK', '0') == '0'
    if is_first and isinstance(model, BaseSegmentor) and (commands := _next_commands(config)):
        say('\n  '.join(['Next:', *commands]))


def _next_commands(config: Config) -> tuple[str, ...]:
    """Commands that use and judge what a training has left, if there is something to test on."""
    if config.get('test_dataloader') is None or newest_checkpoint(config.work_dir) is None:
        return ()
    domain = next(iter(config.model.get('domains') or ()), None)
    name = method_in_name(config.filename) or Path(config.work_dir).resolve().name
    return commands_after_training(Path(config.work_dir), name, domain)
