"""What tools/train.py and tools/test.py share: from the command line's values to a Runner.

Training, evaluation, logging and resuming are mmengine's. What is added here: checks of what the
first hours would not show, and one line for a user's mistake.
"""

import argparse
import gc
import logging
import os
from pathlib import Path
from typing import Any

import torch.distributed
from mmengine.config import Config, DictAction
from mmengine.device import get_device
from mmengine.logging import print_log
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from mmseg_cct.checkpoints import find_resumable, read_checkpoint, require_training_state
from mmseg_cct.config_mistakes import config_mistakes_as_user_errors, require_optimizer
from mmseg_cct.device import enable_amp, fit_to_device
from mmseg_cct.errors import UserError
from mmseg_cct.pretrained import fetch_pretrained_weights

# What a scheduler may call the iteration at which it ends.
_SCHEDULER_ENDS = ('end', 'T_max', 'total_steps')
# MMSeg's metrics that write predictions.
_PNG_WRITERS = ('IoUMetric', 'CityscapesMetric', 'MultiDomainIoUMetric')


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that training and testing have in common.

    Args:
        parser: Where to add them.
    """
    add_cfg_options(parser)
    parser.add_argument(
        '--launcher',
        choices=['none', 'pytorch', 'slurm', 'mpi'],
        default='none',
        help='what started the processes of a distributed run; dist_*.sh and slurm_*.sh set it',
    )
    # torch.distributed.launch passes it, in either spelling; torchrun sets LOCAL_RANK.
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0, help=argparse.SUPPRESS)


def add_cfg_options(parser: argparse.ArgumentParser) -> None:
    """Adds the option for settings of the config.

    Args:
        parser: Where to add it.
    """
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=DictAction,
        default={},
        metavar='KEY=VALUE',
        help='settings of the config to override, as in train_cfg.max_iters=2000; a list is '
        'key="[a,b]" or key=a,b, without spaces',
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    """Adds the option for the device that a single process uses.

    Args:
        parser: Where to add it.
    """
    parser.add_argument('--device', help='cpu, cuda:1, ... (default: the first GPU, else the CPU)')


def prepare_training(
    config_file: str,
    *,
    work_dir: str | None = None,
    resume: str | None = None,
    amp: bool = False,
    options: dict[str, Any] | None = None,
    launcher: str = 'none',
) -> Config:
    """Makes the config of a training run, its weights fetched and its checkpoint found.

    Args:
        config_file: The config.
        work_dir: Where to write; by default the config's own `work_dir` or `work_dirs/<config>`.
        resume: `'auto'` for the latest checkpoint in the work directory, or a checkpoint file.
        amp: Whether to train in mixed precision.
        options: Settings of the config to override, by dotted key. Where they change
            `train_cfg.max_iters`, schedulers that ended at the old value end at the new one.
        launcher: What started the processes: `none`, `pytorch`, `slurm` or `mpi`.

    Returns:
        The config for `train`.

    Raises:
        UserError: A file is missing, or the settings do not fit the device or each other.
    """
    options = options or {}
    config = load_config(config_file, options)
    config.work_dir = work_dir or config.get('work_dir') or _default_work_dir(config_file)
    for key in ('train_dataloader', 'train_cfg', 'optim_wrapper'):
        if config.get(key) is None:
            raise UserError(f'{config_file}: no {key}; expected a config for training')
    require_optimizer(config)
    if amp:
        enable_amp(config)
    if resume is not None:
        _resume(config, resume)
    if config.get('load_from') and not config.get('resume'):
        read_checkpoint(config.load_from)
    fetch_pretrained_weights(config.model)
    _add_hook(config, 'preflight', type='PreflightHook')
    return fit_to_device(config, launcher)


def prepare_test(
    config_file: str,
    checkpoint: str,
    *,
    work_dir: str | None = None,
    out: str | None = None,
    show: bool = False,
    show_dir: str | None = None,
    wait_time: float = 2.0,
    tta: bool = False,
    options: dict[str, Any] | None = None,
    launcher: str = 'none',
) -> Config:
    """Makes the config of a test run.

    Args:
        config_file: The config.
        checkpoint: The weights to test.
        work_dir: Where to write. The runner dumps its config there, so it is never the training's
            own directory: `test` below that is used instead, which is the default too.
        out: Folder for the predictions as PNGs of class ids.
        show: Whether to show each prediction in a window.
        show_dir: Folder for painted predictions.
        wait_time: Seconds that a window stays.
        tta: Whether to average over the config's `tta_pipeline`.
        options: Settings of the config to override, by dotted key.
        launcher: What started the processes: `none`, `pytorch`, `slurm` or `mpi`.

    Returns:
        The config for `test`.

    Raises:
        UserError: A file is missing, or the config lacks what an option needs.
    """
    config = load_config(config_file, options or {})
    read_checkpoint(checkpoint)
    config.load_from, config.resume = checkpoint, False
    _add_hook(config, 'preflight', type='PreflightHook', checkpoint=checkpoint)
    trained_in = config.get('work_dir') or _default_work_dir(config_file)
    config.work_dir = work_dir or os.path.join(trained_in, 'test')
    if os.path.isfile(os.path.join(config.work_dir, 'last_checkpoint')):
        config.work_dir = os.path.join(config.work_dir, 'test')

    needed = ['test_dataloader', 'test_evaluator', 'test_cfg']
    needed += ['tta_model', 'tta_pipeline'] if tta else []
    needed += ['visualizer'] if show or show_dir else []
    for key in needed:
        if config.get(key) is None:
            raise UserError(f'{config_file}: no {key}; expected one for this test')
    if tta:
        _set_pipeline(config.test_dataloader.dataset, config.tta_pipeline)
        config.tta_model.module = config.model
        config.model = config.tta_model
    if show or show_dir:
        hook = config.setdefault('default_hooks', {}).setdefault('visualization', {})
        hook.setdefault('type', 'SegVisualizationHook')
        hook.update(draw=True, interval=1, show=show, wait_time=wait_time)
        if show_dir:
            config.visualizer.save_dir = show_dir
    if out is not None:
        evaluators = config.test_evaluator
        evaluators = evaluators if isinstance(evaluators, (list, tuple)) else [evaluators]
        writers = [evaluator for evaluator in evaluators if evaluator.type in _PNG_WRITERS]
        if not writers:
            expected = ' or '.join(_PNG_WRITERS)
            raise UserError(f'{config_file}: --out needs a test_evaluator of type {expected}')
        for evaluator in writers:
            evaluator.update(output_dir=out, keep_results=True)
    return fit_to_device(config, launcher)


def train(config: Config) -> None:
    """Trains.

    Args:
        config: From `prepare_training`.
    """
    _run(config, 'train')


def test(config: Config) -> dict[str, float]:
    """Tests.

    Args:
        config: From `prepare_test`.

    Returns:
        The metrics by name.
    """
    return _run(config, 'test')


def load_config(config_file: str, options: dict[str, Any]) -> Config:
    """Reads a config and overrides settings in it.

    Args:
        config_file: The config.
        options: Settings to override, by dotted key.

    Returns:
        The config.

    Raises:
        UserError: The file is missing or does not run, or an option does not fit it.
    """
    if not os.path.isfile(config_file):
        raise UserError(f'{config_file}: no such config file')
    try:
        config = Config.fromfile(config_file)
    except Exception as error:
        # A config is Python, so it can fail in any way, and any way is the config's mistake.
        # mmengine wraps a failed import in errors that list sys.path; the first says what fails.
        cause: BaseException = error
        while isinstance(cause, ImportError) and cause.__context__ is not None:
            cause = cause.__context__
        line = ' '.join(f'{type(cause).__name__}: {cause}'.split())
        raise UserError(f'{config_file}: this config does not load: {line}') from error

    old_max_iters = config.get('train_cfg', {}).get('max_iters')
    for key in options:
        if not _has(config, key):
            message = f'--cfg-options {key}: a new key, the config has none of this name'
            print_log(message, logger='current', level=logging.WARNING)
    try:
        config.merge_from_dict(options)
    except Exception as error:
        line = ' '.join(str(error).split())
        raise UserError(f'--cfg-options: does not fit {config_file}: {line}') from error
    if not any(key.split('.')[0] == 'param_scheduler' for key in options):
        _end_schedulers_with_training(config, old_max_iters)
    _check_domains(config)
    return config


def _default_work_dir(config_file: str) -> str:
    return os.path.join('work_dirs', Path(config_file).stem)


def _check_domains(config: Config) -> None:
    """Checks that model, data and sampler fit: the first validation may be hours away."""
    known = (config.get('model') or {}).get('domains')
    if known is None:
        return
    for split in ('train', 'val', 'test'):
        key = f'{split}_dataloader'
        loader = config.get(key) or {}
        for name in loader.get('dataset', {}).get('domains', {}):
            if name not in known:
                raise UserError(
                    f'{key}.dataset.domains.{name}: no such domain in the model; expected one of '
                    f'{", ".join(known)}'
                )
        batch_size = loader.get('batch_size')
        own_size = loader.get('sampler', {}).get('batch_size', batch_size)
        if own_size != batch_size:
            raise UserError(
                f'{key}.sampler.batch_size={own_size}: expected {batch_size}, as in {key}'
            )


def _set_pipeline(dataset: Any, pipeline: Any) -> None:
    """Sets the pipeline of a set, or that of each domain by its name."""
    if 'domains' not in dataset:
        dataset.pipeline = pipeline
        return
    for name, part in dataset.domains.items():
        if name not in pipeline:
            raise UserError(f'tta_pipeline: none for the domain {name}; expected one by its name')
        part.pipeline = pipeline[name]


def _has(config: Any, key: str) -> bool:
    for name in key.split('.'):
        if isinstance(config, (list, tuple)) and name.isdigit() and int(name) < len(config):
            config = config[int(name)]
        elif hasattr(config, 'keys') and name in config:
            config = config[name]
        else:
            return False
    return True


def _end_schedulers_with_training(config: Config, old_max_iters: int | None) -> None:
    """Moves the end of every scheduler that ended with the training to its new end."""
    new_max_iters = config.get('train_cfg', {}).get('max_iters')
    schedulers = config.get('param_scheduler') or []
    for scheduler in schedulers if isinstance(schedulers, list) else [schedulers]:
        if scheduler.get('by_epoch', True) or old_max_iters is None:
            continue
        for key in _SCHEDULER_ENDS:
            if scheduler.get(key) == old_max_iters:
                scheduler[key] = new_max_iters


def _resume(config: Config, resume: str) -> None:
    checkpoint = find_resumable(config.work_dir) if resume == 'auto' else resume
    if checkpoint is None:
        print_log(
            f'--resume: no whole checkpoint in {config.work_dir}, training starts at iteration 0',
            logger='current',
            level=logging.WARNING,
        )
        return
    require_training_state(read_checkpoint(checkpoint), checkpoint)
    # mmengine resumes from `load_from` where both are set.
    config.load_from, config.resume = checkpoint, True
    _add_hook(config, 'resume', type='ResumeHook', checkpoint=checkpoint)


def _add_hook(config: Config, name: str, **hook: Any) -> None:
    if config.get('default_hooks') is None:
        config.default_hooks = {}
    config.default_hooks.setdefault(name, hook)


def _run(config: Config, what: str) -> Any:
    # mmengine's own start of a process group selects a CUDA device; it keeps a group that is there.
    own_group = config.launcher != 'none' and get_device() == 'cpu'
    if own_group:
        torch.distributed.init_process_group('gloo')
    with config_mistakes_as_user_errors(config):
        runner = RUNNERS.build(config) if 'runner_type' in config else Runner.from_cfg(config)
        result = getattr(runner, what)()
    if own_group:  # after an error the process ends, and its message needs the group's store
        # The distributed model holds the group. Were it left to the interpreter's end, a thread of
        # the group that lets go of a tensor then would abort the process (pytorch#190489).
        del runner
        gc.collect()
        torch.distributed.destroy_process_group()
    return result
